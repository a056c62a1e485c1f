"""From a folder of PNG photographs to one that loads faster: profiles it, converts it as recommended, and reads it.

    python examples/profile_dataset.py data/images data/best
    python examples/profile_dataset.py train/ train-mix/ --cache-size 60GiB

Does what `dali-l3 profile train/ --cache-size 60GiB --write train-mix/` does, as functions.
"""

import argparse

from nvidia.dali import fn, pipeline_def

import dali_l3.fn
from dali_l3.jobs.workers import usable_cpus
from dali_l3.profiling import dataset, profiler
from dali_l3.profiling.measuring import Setting
from dali_l3.sizes import parse_size


def main() -> None:
    parser = argparse.ArgumentParser(description="Profile a folder of images and convert it as recommended.")
    parser.add_argument("source", help="folder with a subfolder of images for each class")
    parser.add_argument("target", help="folder to write to")
    parser.add_argument("--cache-size", default="1MiB", help="memory that the reader may fill")
    parser.add_argument("--seconds", type=float, default=0.5, help="that each measurement takes at least")
    arguments = parser.parse_args()

    setting = Setting(batch_size=16, threads=usable_cpus(), seconds=arguments.seconds)
    found = profiler.profile(arguments.source, profiler.Options(setting, parse_size(arguments.cache_size)))
    for finding in found.diagnosis.findings:
        print(finding)
    print(f"recommended: {found.recommendation}, {found.gain:.1f} times the images/s of fn.readers.file")

    _, outcomes = dataset.convert_dataset(found, arguments.target)
    for outcome in outcomes:
        if outcome.status == "failed":
            raise SystemExit(f"{outcome.source}: {outcome.reason}")
    written = dataset.measure_dataset(found, arguments.target)
    print(f"predicted {written.predicted:.0f} images/s, measured {written.measured.mean:.0f}")

    @pipeline_def(batch_size=16, num_threads=usable_cpus(), device_id=None)
    def training_pipeline():
        # Before: encoded, labels = fn.readers.file(file_root=arguments.source, random_shuffle=True, name="train")
        encoded, labels = dali_l3.fn.readers.liquid(
            file_root=arguments.target, cache_size=arguments.cache_size, name="train"
        )
        return fn.decoders.image(encoded), labels

    images, labels = training_pipeline().run()
    print(f"a batch of {len(images)} images, the first of shape {images.at(0).shape} and class {labels.at(0)[0]}")


if __name__ == "__main__":  # the workers are processes, which import this file
    main()
