"""A model of Triton: decodes L3 images, and makes of them what a network takes.

python examples/triton_models/l3_images/1/dali.py

writes model.dali beside this file, which the server loads. Where there is none, the server runs this file instead.
"""

from pathlib import Path

from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.plugin.triton import autoserialize

import dali_l3.fn

MEAN = [0.485 * 255, 0.456 * 255, 0.406 * 255]  # of ImageNet
STD = [0.229 * 255, 0.224 * 255, 0.225 * 255]


@autoserialize
@pipeline_def(batch_size=64, num_threads=4, device_id=None)
def pipeline():
    encoded = fn.external_source(name="encoded", ndim=1, dtype=types.UINT8)
    images = dali_l3.fn.decoders.l3(encoded)
    images = fn.resize(images, size=[224, 224])
    return fn.crop_mirror_normalize(images, output_layout="CHW", mean=MEAN, std=STD)


if __name__ == "__main__":
    model = Path(__file__).with_name("model.dali")
    pipeline().serialize(filename=str(model))
    print(f"wrote {model.name}")
