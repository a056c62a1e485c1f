"""The package's version, which csrc/l3/include/l3/l3.h names for everything."""

from . import _core

__version__: str = _core.version()
