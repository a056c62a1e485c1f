"""What conversions from and to buckets need: the servers of `buckets`, for s3fs and gcsfs, and what is in a bucket."""

from __future__ import annotations

import json
import os
import urllib.parse
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from contextlib import contextmanager

import fsspec

import buckets
from buckets import BUCKET, Bucket
from dali_l3.units import storage


@contextmanager
def bucket(scheme: str) -> Iterator[Bucket]:
    """A bucket as `buckets.bucket` makes it, which s3fs and gcsfs find, too."""
    with buckets.bucket(scheme) as made:
        os.environ.pop("AWS_MAX_ATTEMPTS", None)
        os.environ.update(gcsfs_variables(made))
        forget_buckets()
        yield made
    forget_buckets()


def gcsfs_variables(bucket: Bucket) -> dict[str, str]:
    """What lets gcsfs find a bucket at "gs"."""
    if bucket.scheme != "gs":
        return {}
    return {  # without the proxy: the server tells gcsfs its own address in the middle of uploads
        "STORAGE_EMULATOR_HOST": f"http://127.0.0.1:{bucket.port}",
        "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false",  # which asks for what the emulator does not know
    }


def forget_buckets() -> None:
    """Has the next access look for endpoints and packages anew."""
    storage._bucket_storage.cache_clear()
    for scheme in ("s3", "gs"):
        fsspec.get_filesystem_class(scheme).clear_instance_cache()


def contents(bucket: Bucket, folder: str) -> dict[str, bytes]:
    """The objects below a folder, by their names in it; asked of the server itself."""
    return {key[len(folder) + 1 :]: _get(bucket, key) for key in _keys(bucket, f"{folder}/")}


def delete(bucket: Bucket, folder: str) -> None:
    for key in _keys(bucket, f"{folder}/"):
        bucket.send("DELETE", f"/{BUCKET}/{urllib.parse.quote(key)}")


def _keys(bucket: Bucket, prefix: str) -> list[str]:
    query = f"prefix={urllib.parse.quote(prefix, safe='')}"
    if bucket.scheme == "gs":
        answer = json.loads(bucket.send("GET", f"/storage/v1/b/{BUCKET}/o?{query}"))
        return [item["name"] for item in answer.get("items", [])]
    answer = ElementTree.fromstring(bucket.send("GET", f"/{BUCKET}?list-type=2&{query}"))
    assert answer.findtext("{*}IsTruncated") == "false"
    return [element.text for element in answer.iterfind("{*}Contents/{*}Key")]


def _get(bucket: Bucket, key: str) -> bytes:
    if bucket.scheme == "gs":
        return bucket.send("GET", f"/storage/v1/b/{BUCKET}/o/{urllib.parse.quote(key, safe='')}?alt=media")
    return bucket.send("GET", f"/{BUCKET}/{urllib.parse.quote(key)}")
