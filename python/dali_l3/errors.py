"""The exceptions that this package raises itself."""


class L3Error(ValueError):
    """The bytes are not a valid L3 file, or the codec cannot use an argument.

    Attributes:
        status: The kind of failure: ``"argument"``, ``"signature"`` (not an L3 file), ``"unsupported"``, ``"limit"``,
            ``"truncated"``, ``"corrupt"``, ``"checksum"`` or ``"capacity"``.
    """

    def __init__(self, message: str, status: str = "") -> None:
        super().__init__(message)
        self.status = status


class ConversionError(ValueError):
    """A file cannot be converted, or the request is wrong; the message says why."""


class StorageError(OSError):
    """The storage of files does not answer, or not to us: no file is to blame. ``filename`` is what was asked for."""


class TargetError(OSError):
    """A target cannot be written, and its source is not the reason. ``filename`` is the path of the target."""
