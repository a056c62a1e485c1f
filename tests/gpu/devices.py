"""The devices that tests run on: their bodies run on the CPU everywhere, and on the GPU where there is one."""

import ctypes

import pytest

from dali_l3 import _native


def has_gpu() -> bool:
    """Whether the CUDA driver is there and sees a device."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 and count.value > 0


needs_plugin = pytest.mark.skipif(not _native.ADAPTER_SOURCE.is_dir(), reason="built without the DALI plugin")
needs_gpu = pytest.mark.skipif(not has_gpu(), reason="there is no GPU")

# Of fn.decoders.l3 and fn.decoders.image.
each_device = pytest.mark.parametrize("device", ["cpu", pytest.param("mixed", marks=needs_gpu)])
