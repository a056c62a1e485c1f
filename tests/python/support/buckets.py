"""Buckets of S3 and Google Cloud Storage on this machine, behind a proxy that can be told to fail.

Servers and proxy have a process of their own: DALI holds Python's lock while it builds a pipeline.
"""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from unreliable_proxy import Fault, Request, UnreliableProxy

BUCKET = "bucket"


@dataclass
class Bucket:
    """A bucket, and the proxy through which DALI reaches it."""

    scheme: str
    port: int
    """Of the server itself, past the proxy."""
    _proxy: Connection

    def uri(self, key: str = "") -> str:
        return f"{self.scheme}://{BUCKET}/{key}"

    def put(self, key: str, content: bytes) -> str:
        """Stores an object."""
        if self.scheme == "s3":
            self.send("PUT", f"/{BUCKET}/{urllib.parse.quote(key)}", content)
        else:
            name = urllib.parse.quote(key, safe="")
            self.send("POST", f"/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={name}", content)
        return self.uri(key)

    def put_folder(self, folder: Path, key: str) -> str:
        """Stores all the files in a folder and the folders in it."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(f"{key}/{path.relative_to(folder)}", path.read_bytes())
        return self.uri(key)

    def send(self, method: str, path: str, content: bytes | None = None) -> bytes:
        """Sends the server a request; returns what it answers."""
        url = f"http://127.0.0.1:{self.port}{path}"
        # An owner, without whom nothing may be written again; nobody checks the signature.
        owner = "AWS4-HMAC-SHA256 Credential=key/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0"
        headers = {"Content-Type": "application/octet-stream", "Authorization": owner}
        return urllib.request.urlopen(urllib.request.Request(url, content, headers, method=method)).read()

    @contextmanager
    def failing(self, *faults: Fault, delay: float = 0) -> Iterator[None]:
        """What comes to the proxy meanwhile fails so, and is answered so many seconds late."""
        self._ask("set", faults, delay)
        try:
            yield
        finally:
            self._ask("set", (), 0)

    def take_requests(self) -> list[Request]:
        """The requests that have come to the proxy since this was called before."""
        return self._ask("take")

    def _ask(self, *command):
        self._proxy.send(command)
        return self._proxy.recv()


def _start_s3() -> int:
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    return server.get_host_and_port()[1]


def _start_gs() -> int:
    from gcp_storage_emulator.server import create_server

    server = create_server("127.0.0.1", 0, in_memory=True, default_bucket=BUCKET)
    server.start()
    return server._api._httpd.socket.getsockname()[1]


def _serve(scheme: str, commands: Connection) -> None:
    proxy = UnreliableProxy(_start_s3() if scheme == "s3" else _start_gs())
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(proxy.serve, "127.0.0.1", 0))

    def obey() -> None:
        commands.send((proxy.upstream_port, server.sockets[0].getsockname()[1]))
        while True:
            try:
                command, *arguments = commands.recv()
            except EOFError:
                os._exit(0)
            if command == "set":
                proxy.fail(*arguments)
                commands.send(None)
            else:
                taken, proxy.requests = proxy.requests, []
                commands.send(taken)

    threading.Thread(target=obey, daemon=True).start()
    loop.run_forever()


@contextmanager
def bucket(scheme: str) -> Iterator[Bucket]:
    """A bucket at "s3" or "gs". One of each for a process: DALI keeps to the endpoint that it has used first."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=_serve, args=(scheme, theirs), daemon=True)
    process.start()
    theirs.close()
    try:
        upstream_port, port = ours.recv()
        found = Bucket(scheme, upstream_port, ours)
        if scheme == "s3":
            found.send("PUT", f"/{BUCKET}")
        with _environment(_variables(scheme, f"http://127.0.0.1:{port}")):
            yield found
    finally:
        process.kill()
        process.join()


def _variables(scheme: str, url: str) -> dict[str, str]:
    if scheme == "gs":
        return {"DALI_GCS_ENDPOINT_URL": url, "DALI_GCS_ANONYMOUS": "1", "DALI_GCS_REQUEST_TIMEOUT_SEC": "1"}
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
    }


@contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
