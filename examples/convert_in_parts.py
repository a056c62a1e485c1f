"""Converts a folder of images to tar shards in three parts, as the jobs of a cluster do, one of which is lost.

python examples/convert_in_parts.py data/images data/parts
"""

import argparse
import subprocess
import sys
import tarfile
from pathlib import Path

PARTS = 3


def convert(*arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", "dali_l3.cli", "convert", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def print_status(shards: str) -> None:
    print(convert("--status", shards).communicate()[0], end="")


def main() -> None:
    parser = argparse.ArgumentParser(description="Convert a folder to tar shards in parts.")
    parser.add_argument("images", help="folder of images")
    parser.add_argument("shards", help="folder for the shards")
    arguments = parser.parse_args()
    conversion = (arguments.images, arguments.shards, "--shards", "1MiB")

    convert(*conversion, "--plan").wait()  # lists the images once, for all jobs
    jobs = [convert(*conversion, "--part", f"{part}/{PARTS}", "--workers", "1") for part in range(1, PARTS)]
    for job in jobs:
        job.wait()
    print("the last job was lost:")
    print_status(arguments.shards)

    convert(*conversion).wait()  # the same command without a part does whatever is left
    print("all that was left is done:")
    print_status(arguments.shards)
    for path in sorted(Path(arguments.shards).glob("*.tar")):
        with tarfile.open(path) as shard:
            print(f"{path.name}: {len(shard.getnames()) // 2} images and their labels")


if __name__ == "__main__":
    main()
