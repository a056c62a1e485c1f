"""DALI's functional API for the operators of this package, with types, for use inside a pipeline definition.

The same operators are found in DALI's own modules: `dali_l3.fn.decoders.l3` is `nvidia.dali.fn.decoders.l3`.
"""

from . import decoders, readers

__all__ = ["decoders", "readers"]
