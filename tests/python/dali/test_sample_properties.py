"""What DALI's own operators tell of the samples that the readers deliver: their paths and their decoded sizes."""

from __future__ import annotations

import io

import numpy as np
import pytest
from nvidia.dali import Pipeline, fn
from PIL import Image

import dali_l3
from dali_l3.fn import readers
from versions import image_decoders, since

pytestmark = pytest.mark.usefixtures("plugin")

ORIENTATION = 0x112


def saved(image: np.ndarray, format: str, orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    file = io.BytesIO()
    Image.fromarray(image).save(file, format, **({"exif": exif} if orientation != 1 else {}))
    return file.getvalue()


@pytest.mark.parametrize("reader", [readers.multi_format, readers.liquid])
@since(2, 2, "fn.peek_image_shape through nvImageCodec")
def test_paths_and_decoded_sizes(tmp_path, reader):
    rng = np.random.default_rng(0)
    folder = tmp_path / "a"
    folder.mkdir()
    for i, format in enumerate(("PNG", "JPEG", "BMP", "TIFF", "WEBP")):
        image = rng.integers(0, 256, (20 + i, 30 + 2 * i, 3), np.uint8)
        (folder / f"{i}.{format.lower()}").write_bytes(saved(image, format))
        (folder / f"{i}.l3").write_bytes(dali_l3.encode(image))
        if format != "BMP":  # which holds no EXIF
            (folder / f"turned {i}.{format.lower()}").write_bytes(saved(image, format, orientation=6))
    pipeline = Pipeline(batch_size=14, num_threads=2, device_id=None)
    with pipeline:
        images, _ = reader(name="reader", file_root=str(tmp_path), random_shuffle=True)
        paths = fn.get_property(images, key="source_info")
        pipeline.set_outputs(paths, fn.peek_image_shape(images), image_decoders.image(images))
    pipeline.build()
    assert pipeline.epoch_size("reader") == 14
    paths, shapes, pixels = pipeline.run()
    names = [bytes(np.array(path)).decode() for path in paths]
    assert sorted(names) == sorted(f"a/{path.name}" for path in folder.iterdir())
    assert [tuple(np.array(shape)) for shape in shapes] == [np.array(image).shape for image in pixels]
    for name, (height, width, _) in zip(names, map(np.array, shapes), strict=True):
        assert (height > width) == name.startswith("a/turned"), name
