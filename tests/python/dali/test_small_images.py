"""Many small images in one batch: pixels, and whose error it is, with both decoders."""

import re

import numpy as np
import pytest
from nvidia.dali import fn

import dali_l3
from pipelines import decode_batch, decode_files
from versions import image_decoders

pytestmark = pytest.mark.usefixtures("plugin")

BYPASS_CACHE_SIZE = 4 << 20  # bytes of a batch from which on it is written past the cache
DECODERS = {"l3": lambda *inputs, **arguments: fn.decoders.l3(*inputs, **arguments), "image": image_decoders.image}


@pytest.fixture(params=DECODERS)
def decoder(request):
    return DECODERS[request.param]


def small_images(count, largest):
    """Noise of sizes that differ, from one pixel up."""
    generator = np.random.default_rng(largest)
    sizes = [(1, 1), (1, largest), (largest, 1), *generator.integers(1, largest, (count - 3, 2), endpoint=True)]
    return [generator.integers(0, 256, (height, width, 3), np.uint8) for height, width in sizes]


@pytest.mark.parametrize(("count", "largest", "bypasses_cache"), [(40, 150, False), (120, 300, True)])
def test_a_batch_of_many_sizes(decoder, count, largest, bypasses_cache):
    images = small_images(count, largest)
    assert (sum(image.nbytes for image in images) >= BYPASS_CACHE_SIZE) == bypasses_cache
    decoded = decode_batch(decoder, [dali_l3.encode(image, effort=1) for image in images])
    for number, (found, expected) in enumerate(zip(decoded, images, strict=True)):
        np.testing.assert_array_equal(found, expected, err_msg=f"sample {number}", strict=True)


@pytest.mark.parametrize("broken", [0, 57, 99])
@pytest.mark.parametrize("position", [40, -100], ids=["header", "tile"])
def test_the_broken_one_of_many_is_named(decoder, broken, position, tmp_path):
    flat = bytearray(dali_l3.encode(np.full((50, 70, 3), 7, np.uint8), profile="raw"))
    flat[position] ^= 1
    files = [dali_l3.encode(image, effort=1) for image in small_images(100, 90)]
    files[broken] = bytes(flat)
    paths = [tmp_path / f"{number:03}.l3" for number in range(len(files))]
    for path, file in zip(paths, files, strict=True):
        path.write_bytes(file)
    name = re.escape(str(paths[broken]))
    with pytest.raises(RuntimeError, match=rf"Failed to decode sample #{broken} (: {name}|\({name}\))"):
        decode_files(decoder, paths)
