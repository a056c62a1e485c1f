"""The version of the package, which csrc/l3/include/l3/l3.h defines."""

from . import _core

__version__: str = _core.version()
