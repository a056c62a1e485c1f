"""Keeps seven of ten JPEG files as they are, stores the others as L3, and reads both: the pictures are the same.

    dali-l3 convert data/images data/jpeg --mix jpeg@90:1
    python examples/mix_jpegs.py data/jpeg data/jpeg-mix

Does what `dali-l3 convert data/jpeg data/jpeg-mix --mix source:7,l3-fast:3` does, as functions.
"""

import argparse
from pathlib import Path

import numpy as np
from nvidia.dali import fn, pipeline_def

import dali_l3.fn
from dali_l3.conversion.converting import convert_file
from dali_l3.conversion.mixing import parse_mix, plan_mix, recorded
from dali_l3.images.reading import prepare_process
from dali_l3.jobs.running import run_plan


def pictures(folder: str) -> dict[str, np.ndarray]:
    """What DALI's decoder makes of each file of a dataset, by class folder and name without suffix."""
    count = sum(path.suffix in (".jpg", ".l3") for path in Path(folder).rglob("*"))

    @pipeline_def(batch_size=count, num_threads=2, device_id=None)
    def pipeline():
        encoded, _ = dali_l3.fn.readers.liquid(file_root=folder, cache_size="1MiB", name="reader")
        return fn.decoders.image(encoded)

    (images,) = pipeline().run()
    paths = [Path(images[i].source_info()) for i in range(count)]
    return {f"{path.parent.name}/{path.stem}": np.array(images[i]) for i, path in enumerate(paths)}


def main() -> None:
    parser = argparse.ArgumentParser(description="Mix JPEG files with L3 files made of them.")
    parser.add_argument("source", help="folder with a subfolder of JPEG files for each class")
    parser.add_argument("target", help="folder to write to")
    arguments = parser.parse_args()

    work, record = plan_mix(arguments.source, arguments.target, parse_mix("source:7,l3-fast:3"))
    outcomes = run_plan(work, convert_file, initializer=prepare_process)
    for outcome in recorded(outcomes, record, arguments.source, arguments.target):
        if outcome.status == "failed":
            raise SystemExit(f"{outcome.source}: {outcome.reason}")
    for name, total in record.totals().items():
        print(f"{name}: {total['files']} files")

    before, after = pictures(arguments.source), pictures(arguments.target)
    assert before.keys() == after.keys()
    same = sum(np.array_equal(before[name], after[name]) for name in before)
    print(f"{same} of {len(before)} pictures are the same, to the last bit")


if __name__ == "__main__":  # the workers are processes, which import this file
    main()
