"""L3: lossless images that decode as fast as training reads, with operators for NVIDIA DALI.

>>> data = dali_l3.encode(array)        # (H, W) or (H, W, C), uint8 or uint16
>>> array = dali_l3.decode(data)
>>> dali_l3.imwrite("image.l3", array)
>>> window = dali_l3.imread("image.l3", roi=(0, 0, 256, 256))  # top, left, height, width

If DALI is installed, importing this package adds ``fn.decoders.l3``, ``fn.readers.multi_format`` and
``fn.readers.liquid`` to it, and ``fn.decoders.image`` and nvImageCodec can decode L3. Pillow and
imageio read and write ``.l3`` files then, too. It imports none of them itself.
"""

from . import _integrations, _plugin, fn
from .batches import decode_batch
from .codec import ImageInfo, backend, decode, encode, peek, read_metadata
from .config import show_config
from .errors import L3Error
from .image_files import imread, imshape, imwrite
from .statistics import reader_stats
from .tables import read_table
from .version import __version__

__all__ = [
    "ImageInfo",
    "L3Error",
    "__version__",
    "backend",
    "decode",
    "decode_batch",
    "encode",
    "fn",
    "imread",
    "imshape",
    "imwrite",
    "peek",
    "read_metadata",
    "reader_stats",
    "read_table",
    "show_config",
]

_plugin.install()
_integrations.install()
