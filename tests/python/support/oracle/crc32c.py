"""CRC-32C (Castagnoli), byte by byte from a table."""

_REFLECTED_POLYNOMIAL = 0x82F63B78  # 0x1EDC6F41 with its bits in reverse


def _table_entry(value: int) -> int:
    for _ in range(8):
        value = (value >> 1) ^ (_REFLECTED_POLYNOMIAL if value & 1 else 0)
    return value


_TABLE = [_table_entry(byte) for byte in range(256)]


def crc32c(data: bytes) -> int:
    """Return the CRC-32C of `data`."""
    crc = 0xFFFFFFFF
    for byte in bytes(data):
        crc = (crc >> 8) ^ _TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF
