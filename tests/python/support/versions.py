"""What differs between the versions of DALI that the tests run with; docs/dali.md has the table."""

import nvidia.dali
import pytest
from nvidia.dali import fn

DALI = tuple(int(part) for part in nvidia.dali.__version__.split(".")[:2])

# Those that decode through nvImageCodec; before 2.2, DALI's main ones do not.
image_decoders = fn.decoders if DALI >= (2, 2) else fn.experimental.decoders
IMAGE_DECODER = "fn.decoders.image" if DALI >= (2, 2) else "fn.experimental.decoders.image"


def since(major, minor, what):
    """Skips a test of what came with a version of DALI."""
    return pytest.mark.skipif((major, minor) > DALI, reason=f"{what} came with DALI {major}.{minor}")
