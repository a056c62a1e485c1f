"""The exceptions that this package raises itself."""


class L3Error(ValueError):
    """Bytes that are not a sound L3 file, or an argument that the codec cannot use.

    Attributes:
        status: The kind of failure: ``"argument"``, ``"signature"`` (not an L3 file), ``"unsupported"``, ``"limit"``,
            ``"truncated"``, ``"corrupt"``, ``"checksum"`` or ``"capacity"``.
    """

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.status = status


class ConversionError(ValueError):
    """A file or a request that cannot be converted; the message says why."""


class TargetError(OSError):
    """A file that cannot be written, which its source is not to blame for. ``filename`` is its path."""
