"""L3: lossless images that decode as fast as training reads, with operators for NVIDIA DALI.

>>> data = dali_l3.encode(array)        # (H, W) or (H, W, C), uint8 or uint16
>>> array = dali_l3.decode(data)

If DALI is installed, importing this package adds ``fn.decoders.l3``, ``fn.readers.multi_format`` and
``fn.readers.liquid`` to it, and ``fn.decoders.image`` and nvImageCodec can decode L3. It does not import DALI itself.
"""

from . import _plugin, fn
from .codec import ImageInfo, backend, decode, encode, peek, read_metadata
from .errors import L3Error
from .statistics import reader_stats
from .version import __version__

__all__ = [
    "ImageInfo",
    "L3Error",
    "__version__",
    "backend",
    "decode",
    "encode",
    "fn",
    "peek",
    "read_metadata",
    "reader_stats",
]

_plugin.install()
