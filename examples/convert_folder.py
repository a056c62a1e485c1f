"""Converts a folder of images to L3 from Python, as `dali-l3 convert SRC DST` does, and says what became of each file.

python examples/convert_folder.py SRC DST
"""

import argparse

from dali_l3.conversion.converting import TO_L3, convert_file
from dali_l3.jobs.planning import plan
from dali_l3.jobs.workers import run_tasks, usable_cpus


def main() -> None:
    parser = argparse.ArgumentParser(description="Convert a folder of images to L3.")
    parser.add_argument("source", help="folder of images; its subfolders are mirrored")
    parser.add_argument("target", help="folder to write to")
    arguments = parser.parse_args()

    work = plan(arguments.source, arguments.target, TO_L3)  # decides everything before anything is written
    work.prepare_folders()
    outcomes = [*work.outcomes, *run_tasks(convert_file, work.tasks, usable_cpus())]
    for outcome in outcomes:
        change = f" {outcome.source_size} -> {outcome.target_size} bytes" if outcome.target_size else ""
        print(f"{outcome.status:7} {outcome.source}{change} {outcome.reason}".rstrip())
    if any(outcome.status == "failed" for outcome in outcomes):
        raise SystemExit(1)


if __name__ == "__main__":  # the workers are processes, which import this file
    main()
