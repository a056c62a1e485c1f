"""The recipes of docs/readers.md for the layouts of known datasets: images and what belongs to them, in pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from nvidia.dali import fn, pipeline_def, types
from PIL import Image

from dali_l3.conversion.converting import convert_image
from dali_l3.fn import readers
from dali_l3.images.stored import ReadOptions
from reading import HEADERS, Reading, grow

pytestmark = [
    pytest.mark.usefixtures("plugin"),
    pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid]),
]

CITIES = {"aachen": 5, "bochum": 4}
FRAMES = [f"{city}/{city}_{i:06d}_000019" for city, count in CITIES.items() for i in range(count)]


def pairs(reader, **arguments) -> set[tuple[str, ...]]:
    """For each sample of an epoch the path that each of its files holds, see `grow`."""
    reading = Reading(reader, batch_size=1, random_shuffle=True, **arguments)
    batches = reading.batches(reading.pipeline.epoch_size("reader"))
    image_header = HEADERS[Path(batches[0][0].path).suffix[1:]]
    return {
        (
            sample.files[0].removeprefix(image_header).decode(),
            *(file.removeprefix(HEADERS["png"]).decode() for file in sample.files[1:]),
        )
        for (sample,) in batches
    }


def test_cityscapes(tmp_path, reader):
    grow(tmp_path / "leftImg8bit/train", [f"{frame}_leftImg8bit.png" for frame in FRAMES])
    labels = [f"{frame}_gtFine_{kind}.png" for frame in FRAMES for kind in ("labelIds", "instanceIds", "color")]
    grow(tmp_path / "gtFine/train", labels)
    found = pairs(
        reader,
        file_root=str(tmp_path / "leftImg8bit/train"),
        companions=[
            "../../gtFine/train/{dir}/{stem%_leftImg8bit}_gtFine_labelIds.png",
            "../../gtFine/train/{dir}/{stem%_leftImg8bit}_gtFine_instanceIds.png",
        ],
    )
    assert found == {
        (f"{frame}_leftImg8bit.png", f"{frame}_gtFine_labelIds.png", f"{frame}_gtFine_instanceIds.png")
        for frame in FRAMES
    }


def test_ade20k(tmp_path, reader):
    names = [f"ADE_train_{i:08d}" for i in range(1, 8)]
    grow(tmp_path, [f"images/training/{name}.jpg" for name in names] + ["images/validation/ADE_val_00000001.jpg"])
    grow(tmp_path, [f"annotations/training/{name}.png" for name in names])
    found = pairs(
        reader,
        file_root=str(tmp_path / "images"),
        dir_filters=["training"],
        companions=["../annotations/{dir}/{stem}.png"],
    )
    assert found == {(f"images/training/{name}.jpg", f"annotations/training/{name}.png") for name in names}


def test_pascal_voc(tmp_path, reader):
    names = [f"2007_{i:06d}" for i in range(9)]
    segmented = names[::3]  # few images have a mask; ImageSets/Segmentation/train.txt names them
    grow(tmp_path, [f"JPEGImages/{name}.jpg" for name in names])
    grow(tmp_path, [f"SegmentationClass/{name}.png" for name in segmented])
    (tmp_path / "train.txt").write_text("\n".join(segmented) + "\n")
    found = pairs(
        reader,
        file_root=str(tmp_path),
        files=[f"JPEGImages/{name}.jpg" for name in (tmp_path / "train.txt").read_text().split()],
        companions=["SegmentationClass/{stem}.png"],
    )
    assert found == {(f"JPEGImages/{name}.jpg", f"SegmentationClass/{name}.png") for name in segmented}


def test_pascal_voc_with_all_images(tmp_path, reader):
    names = [f"2007_{i:06d}" for i in range(9)]
    grow(tmp_path, [f"JPEGImages/{name}.jpg" for name in names])
    grow(tmp_path, [f"SegmentationClass/{name}.png" for name in names[::3]])
    found = pairs(
        reader,
        file_root=str(tmp_path),
        dir_filters=["JPEGImages"],
        companions=["SegmentationClass/{stem}.png"],
        missing_companions="empty",
    )
    masks = {name: f"SegmentationClass/{name}.png" for name in names[::3]}
    assert found == {(f"JPEGImages/{name}.jpg", masks.get(name, "")) for name in names}


def test_coco_panoptic(tmp_path, reader):
    names = [f"{i:012d}" for i in range(9, 16)]
    grow(tmp_path, [f"train2017/{name}.jpg" for name in names] + ["val2017/000000000139.jpg"])
    grow(tmp_path, [f"annotations/panoptic_train2017/{name}.png" for name in names])
    found = pairs(
        reader,
        file_root=str(tmp_path),
        dir_filters=["train2017"],
        companions=["annotations/panoptic_{dir}/{stem}.png"],
    )
    assert found == {(f"train2017/{name}.jpg", f"annotations/panoptic_train2017/{name}.png") for name in names}


def test_masks_with_a_palette(tmp_path, reader):
    """As in Pascal VOC: as colours in DALI, as numbers in L3, and decoded only where they exist."""
    numbers = np.tile(np.array([0, 3, 255], np.uint8), (6, 5))
    mask = Image.fromarray(numbers)
    mask.putpalette(np.random.default_rng(0).permutation(256).astype(np.uint8).repeat(3).tobytes())
    (tmp_path / "JPEGImages").mkdir()
    for name in "abcd":
        Image.fromarray(np.zeros((6, 15, 3), np.uint8)).save(tmp_path / f"JPEGImages/{name}.jpg")
    for name in "ac":
        mask.save(tmp_path / f"JPEGImages/{name}.png")
        data = convert_image((tmp_path / f"JPEGImages/{name}.png").read_bytes(), options=ReadOptions(palette="index"))
        (tmp_path / f"JPEGImages/{name}.l3").write_bytes(data)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, enable_conditionals=True)
    def pipeline(extension):
        _, masks, _ = reader(
            file_root=str(tmp_path),
            file_filters="*.jpg",
            companions=[f"{{dir}}/{{stem}}.{extension}"],
            missing_companions="empty",
        )
        if masks.shape()[0] > 0:
            decoded = fn.decoders.image(masks, output_type=types.GRAY)
        else:
            decoded = types.Constant(np.full((1, 1, 1), 255, np.uint8), device="cpu", layout="HWC")
        return decoded, fn.get_property(masks, key="source_info")

    def masks(extension):
        decoded, paths = pipeline(extension).run()
        return {bytes(np.array(paths[i])).decode()[-5:]: np.array(decoded[i])[:, :, 0] for i in range(4)}

    found = masks("l3")
    for name in "ac":
        assert np.array_equal(found[f"/{name}.l3"], numbers)
        assert not np.array_equal(masks("png")[f"{name}.png"], numbers)
    for name in "bd":
        assert found[f"{name}.jpg"].tolist() == [[255]]
