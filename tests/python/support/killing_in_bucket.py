"""As `killing`, conversions to shards from a bucket to a bucket of S3.

python tests/python/support/killing_in_bucket.py --kills 200
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
from pathlib import Path

import killing
from buckets import Bucket
from converting_in_buckets import bucket, contents, delete

OPTIONS = ("--shards", killing.SHARDS)


def kill_conversions(store: Bucket, folder: Path, kills: int, seed: int) -> int:
    """Kills conversions so many times, at moments all over their time; returns how many got through in the end.

    What is there at any time is whole, and in the end it is what an undisturbed run writes, byte for byte.

    folder: gets the source, and a copy of what an undisturbed run writes
    """
    generator = random.Random(seed)
    pixels = killing.write_source(folder / "in")
    source, target = store.put_folder(folder / "in", "killed/in"), store.uri("killed/out")
    _, whole_time = killing.run(source, store.uri("killed/whole"), *OPTIONS)
    whole = contents(store, "killed/whole")
    (folder / "whole").mkdir()
    for name, data in whole.items():
        (folder / "whole" / name).write_bytes(data)
    killing.assert_holds(folder / "whole", pixels)
    finished = killed = 0
    while killed < kills or contents(store, "killed/out.conversion"):
        after = generator.uniform(0, whole_time) if killed < kills else None
        was_killed, _ = killing.run(source, target, *OPTIONS, after=after)
        killed += was_killed
        visible = contents(store, "killed/out")
        assert visible.items() <= whole.items(), "objects are whole"
        if not was_killed:
            assert visible == whole
            finished += 1
            delete(store, "killed/out")
            delete(store, "killed/out.conversion")
    return finished


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill conversions to S3 at random moments and go on with them.")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with bucket("s3") as store, tempfile.TemporaryDirectory() as folder:
        finished = kill_conversions(store, Path(folder), arguments.kills, arguments.seed)
    print(f"{arguments.kills} kills, {finished} conversions went through, all with the same output")


if __name__ == "__main__":
    os.nice(10)
    main()
