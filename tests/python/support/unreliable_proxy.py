"""A proxy for HTTP that counts requests and, where it is told to, delays, refuses or cuts them."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Request:
    """A request that has come."""

    method: str
    path: str
    range: tuple[int, int] | None
    """First and last byte that it asks for."""
    delivered: int = 0
    """Bytes of the answer's body that have gone out."""


@dataclass(frozen=True)
class Fault:
    """What becomes of some requests. Without more, they are answered."""

    matching: str = ""
    """Of requests whose method and path, "GET /bucket/a.png", hold what this regular expression finds."""
    times: int = 1_000_000
    """Of so many for each path; later ones fare well."""
    status: int | None = None
    """Answered so, with a body of XML as S3 has it."""
    code: str = "Fault"
    """The error's name in that body."""
    cut_after: int | None = None
    """The connection ends after so many bytes of the answer's body."""
    silent: bool = False
    """There is no answer."""


@dataclass
class UnreliableProxy:
    """Forwards to a server on this machine, each request by a connection of its own."""

    upstream_port: int
    delay: float = 0
    """Seconds before each answer."""
    faults: Sequence[Fault] = ()
    requests: list[Request] = field(default_factory=list)
    _seen: Counter[tuple[Fault, str]] = field(default_factory=Counter)

    def fail(self, faults: Sequence[Fault], delay: float) -> None:
        """What goes wrong from now on."""
        self.faults, self.delay = faults, delay
        self._seen.clear()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answers the requests of a connection."""
        try:
            while head := await _read_head(reader):
                if not await self._answer(head, await _read_body(head, reader, writer), writer):
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()

    def _fault_for(self, request: Request) -> Fault:
        for fault in self.faults:
            if not re.search(fault.matching, f"{request.method} {request.path}"):
                continue
            self._seen[fault, request.path] += 1
            if self._seen[fault, request.path] <= fault.times:
                return fault
        return Fault()

    async def _answer(self, head: bytes, content: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answers one request. Returns whether the connection goes on."""
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
        asked = re.search(rb"\r\nrange: *bytes=(\d+)-(\d+)", head, re.IGNORECASE)
        request = Request(method, path, (int(asked[1]), int(asked[2])) if asked else None)
        requests, number = self.requests, len(self.requests)
        requests.append(request)
        fault = self._fault_for(request)
        await asyncio.sleep(3600 if fault.silent else self.delay)
        if fault.status:
            body = f"<Error><Code>{fault.code}</Code><Message>as the test says</Message></Error>".encode()
            length = f"HTTP/1.1 {fault.status} Fault\r\nContent-Type: application/xml\r\nContent-Length: {len(body)}"
            writer.write(f"{length}\r\n\r\n".encode() + (b"" if method == "HEAD" else body))
            await writer.drain()
            return True
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self.upstream_port)
        try:
            to_server.write(re.sub(rb"\r\n(connection|expect):[^\r]*", b"", head, flags=re.IGNORECASE)[:-2])
            to_server.write(b"Connection: close\r\n\r\n" + content)
            answer = await from_server.readuntil(b"\r\n\r\n")
            writer.write(re.sub(rb"\r\nconnection:[^\r]*", b"", answer, flags=re.IGNORECASE))
            delivered = 0
            while body := await from_server.read(1 << 16):
                if fault.cut_after is not None:
                    body = body[: fault.cut_after - delivered]
                delivered += len(body)
                requests[number] = Request(method, path, request.range, delivered)
                writer.write(body)  # after it was counted: who gets it may ask at once
                await writer.drain()
                if delivered == fault.cut_after:
                    return False
            return b"content-length" in answer.lower()
        finally:
            to_server.close()


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


async def _read_body(head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """What a request sends behind its head. Some clients wait until they are told that they may."""
    if re.search(rb"\r\nexpect: *100-continue", head, re.IGNORECASE):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
    return await reader.readexactly(int(length[1])) if length else b""
