"""Readers of buckets with a real implementation of S3: OpenStack Swift, with its middleware s3api.

    apt-get install swift-proxy swift-account swift-container swift-object memcached
    python tests/buckets/with_swift.py [--folder FOLDER]

starts one server of each kind on this machine, in a folder whose file system has extended attributes, compares what
the readers deliver from a bucket with what they deliver from a folder, and what they say of missing objects and wrong
credentials. All ends with the script.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "python" / "support"))

import boto3
from botocore.config import Config

import dali_l3
from reading import Reading, read, write_dataset
from tar_shards import samples, write_shard

PYTHON = "/usr/bin/python3"  # which has Debian's packages
USER, SECRET, BUCKET = "test:tester", "testing", "bucket"

SWIFT = """[swift-hash]
swift_hash_path_suffix = suffix
swift_hash_path_prefix = prefix
"""
STORAGE = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = {user}
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
workers = 0
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""
PROXY = """[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
user = {user}
swift_dir = {folder}
workers = 0
[pipeline:main]
pipeline = catch_errors gatekeeper cache listing_formats s3api tempauth slo proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:{cache_port}
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
[filter:slo]
use = egg:swift#slo
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
"""
SERVER = """
import sys
from swift.common import utils
utils.set_swift_dir(sys.argv[1])
from swift.common.wsgi import run_wsgi
sys.exit(run_wsgi(sys.argv[2], sys.argv[3], verbose=True))
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def make_ring(folder: Path, kind: str, port: int) -> None:
    builder = folder / f"{kind}.builder"
    for command in (["create", "2", "1", "0"], ["add", f"r1z1-127.0.0.1:{port}/disk", "1"], ["rebalance"]):
        subprocess.run(["swift-ring-builder", builder, *command], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def swift(folder: Path) -> Iterator[str]:
    """The URL of a service that stores in a folder."""
    (folder / "devices" / "disk").mkdir(parents=True)
    (folder / "swift.conf").write_text(SWIFT)
    user = subprocess.run(["id", "-un"], check=True, capture_output=True, text=True).stdout.strip()
    cache_port = free_port()
    servers = [subprocess.Popen(["memcached", "-u", user, "-l", "127.0.0.1", "-p", str(cache_port)])]
    try:
        for kind in ("account", "container", "object", "proxy"):
            port = free_port()
            if kind != "proxy":
                make_ring(folder, kind, port)
            configuration = folder / f"{kind}-server.conf"
            text = PROXY if kind == "proxy" else STORAGE
            configuration.write_text(text.format(port=port, user=user, folder=folder, kind=kind, cache_port=cache_port))
            log = (folder / f"{kind}.log").open("w")
            command = [PYTHON, "-c", SERVER, str(folder), str(configuration), f"{kind}-server"]
            servers.append(subprocess.Popen(command, stdout=log, stderr=log))
        wait_for(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        for server in servers:
            server.kill()
            server.wait()


def wait_for(port: int, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise SystemExit("the proxy does not answer") from None
            time.sleep(0.2)


def upload(url: str, folder: Path) -> None:
    client = boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=USER,
        aws_secret_access_key=SECRET,
        config=Config(
            s3={"addressing_style": "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    client.create_bucket(Bucket=BUCKET)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            client.put_object(Bucket=BUCKET, Key=str(path.relative_to(folder)), Body=path.read_bytes())


def check(what: str, holds: bool) -> None:
    print(f"{'ok' if holds else 'WRONG':6} {what}", flush=True)
    if not holds:
        raise SystemExit(1)


def error_of(**arguments) -> str:
    try:
        Reading(dali_l3.fn.readers.multi_format, **arguments).batch()
    except RuntimeError as error:
        return str(error)
    return ""


def compare(local: Path) -> None:
    """With the environment for the bucket."""
    uri = f"s3://{BUCKET}"
    for name, reader, arguments in (
        ("multi_format", dali_l3.fn.readers.multi_format, {}),
        ("multi_format, mix, 2 shards", dali_l3.fn.readers.multi_format, {"mix": "dataset", "num_shards": 2}),
        ("liquid", dali_l3.fn.readers.liquid, {"cache_size": 1 << 20}),
    ):
        expected = read(reader, 40, file_root=str(local / "data"), **arguments)
        check(name, read(reader, 40, file_root=f"{uri}/data", **arguments) == expected)
    arguments = {"ext": ["png", "seg.png"], "label_ext": "cls", "cache_size": 1 << 20}
    expected = read(dali_l3.fn.readers.liquid, 20, paths=str(local / "shards" / "t-{0..2}.tar"), **arguments)
    for paths in ("t-{0..2}.tar", "t-*.tar"):
        remote = read(dali_l3.fn.readers.liquid, 20, paths=f"{uri}/shards/{paths}", **arguments)
        check(f"liquid, tar shards {paths}", remote == expected)
    missing = error_of(files=[f"{uri}/data/none.png"])
    check("a missing object is named", f"{uri}/data/none.png: there is no such object" in missing)
    check("and so is a missing folder", f"No files found in {uri}/none" in error_of(file_root=f"{uri}/none"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare readers of a bucket of OpenStack Swift and of a folder.")
    parser.add_argument("--folder", help="where everything is stored (default: temporary)")
    parser.add_argument("--compare", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--denied", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.denied:
        message = error_of(files=[f"s3://{BUCKET}/data/none.png"])
        check("wrong credentials are told from missing objects", bool(re.search("these credentials", message)))
        return
    if arguments.compare:
        compare(arguments.compare)
        return

    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        local = Path(folder) / "local"
        write_dataset(local / "data", {"png": 60, "l3": 30, "jpg": 20}, size=20_000)
        (local / "shards").mkdir()
        for i in range(3):
            write_shard(local / "shards" / f"t-{i}.tar", samples(30, f"s{i}/"))
        with swift(Path(folder) / "swift") as url:
            upload(url, local)
            # Processes of their own: DALI keeps to the credentials that it has used first.
            environment = os.environ | {
                "AWS_ENDPOINT_URL": url,
                "AWS_ACCESS_KEY_ID": USER,
                "AWS_SECRET_ACCESS_KEY": SECRET,
                "AWS_DEFAULT_REGION": "us-east-1",
                "AWS_EC2_METADATA_DISABLED": "true",
                "XDG_CACHE_HOME": f"{folder}/cache",
            }
            this = [sys.executable, __file__]
            for options, secret in ((["--compare", str(local)], SECRET), (["--denied"], "wrong")):
                subprocess.run([*this, *options], check=True, env=environment | {"AWS_SECRET_ACCESS_KEY": secret})


if __name__ == "__main__":
    main()
