"""A server of objects by the protocol of S3, as far as readers need it: lists, sizes and ranges, each answered late.

Objects are files, sent by the kernel, so that the server takes little of the CPUs that it shares with what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

MAX_KEYS = 1000  # of a list's page


class ObjectServer:
    """Serves the folders in a folder as buckets."""

    def __init__(self, folder: Path, latency: float) -> None:
        self._folder, self._latency = folder, latency

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):  # the client has gone
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await asyncio.sleep(self._latency)
                method, target, _ = head.split("\r\n", 1)[0].split(" ")
                url = urlsplit(target)
                if url.query:
                    _answer(writer, "200 OK", self._list(url.path, parse_qs(url.query)))
                else:
                    await self._send(writer, method, unquote(url.path), head)
        writer.close()

    async def _send(self, writer: asyncio.StreamWriter, method: str, path: str, head: str) -> None:
        file = self._folder / path.lstrip("/")
        if not file.is_file():
            return _answer(writer, "404 Not Found", b"<Error><Code>NoSuchKey</Code></Error>")
        size = file.stat().st_size
        asked = re.search(r"\r\nrange: *bytes=(\d+)-(\d+)", head, re.IGNORECASE)
        first, last = (int(asked[1]), min(int(asked[2]), size - 1)) if asked else (0, size - 1)
        status = f"206 Partial Content\r\nContent-Range: bytes {first}-{last}/{size}" if asked else "200 OK"
        writer.write(f"HTTP/1.1 {status}\r\nContent-Length: {last - first + 1}\r\n\r\n".encode())
        if method != "HEAD":
            with file.open("rb") as open_file:
                loop = asyncio.get_running_loop()
                await loop.sendfile(writer.transport, open_file, first, last - first + 1)

    def _list(self, path: str, query: dict[str, list[str]]) -> bytes:
        bucket = self._folder / path.strip("/")
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        keys = sorted(str(file.relative_to(bucket)) for file in bucket.rglob("*") if file.is_file())
        keys = [key for key in keys if key.startswith(prefix) and key > after]
        page = keys[:MAX_KEYS]
        contents = "".join(
            f"<Contents><Key>{key}</Key><Size>{(bucket / key).stat().st_size}</Size></Contents>" for key in page
        )
        more = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if len(keys) > MAX_KEYS else ""
        truncated = "true" if more else "false"
        return f"<ListBucketResult><IsTruncated>{truncated}</IsTruncated>{contents}{more}</ListBucketResult>".encode()


def _answer(writer: asyncio.StreamWriter, status: str, body: bytes) -> None:
    kind = "Content-Type: application/xml"
    writer.write(f"HTTP/1.1 {status}\r\n{kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


@contextmanager
def object_server(folder: Path, latency: float) -> Iterator[tuple[str, int]]:
    """The URL of a server in a process of its own, and that process."""
    command = [sys.executable, __file__, str(folder), "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip(), process.pid
        finally:
            process.kill()


async def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the folders in a folder as buckets of S3, and print the URL.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--latency", type=float, default=0, help="seconds before each answer")
    arguments = parser.parse_args()
    server = await asyncio.start_server(ObjectServer(arguments.folder, arguments.latency).serve, "127.0.0.1", 0)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
