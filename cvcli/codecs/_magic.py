"""Formats of Pillow's that the first bytes of a file settle beyond doubt, whatever its name."""

from __future__ import annotations

import struct

# Marks that no other file has reason to start with; short ones such as PPM's or ICO's are no proof.
_MARKS = {
    b"GIF87a": "GIF",
    b"GIF89a": "GIF",
    b"\0\0\0\x0cjP  \r\n\x87\n": "JPEG2000",
    b"\xff\x4f\xff\x51\x00": "JPEG2000",
    b"DDS \x7c\0\0\0": "DDS",
    b"8BPS\0\1": "PSD",
}
_BMP_HEADERS = frozenset((12, 40, 52, 56, 64, 108, 124))


def format_of(head: bytes) -> str | None:
    """Name of the format that a file with these first bytes (at least 32) has, if one is sure."""
    for mark, format in _MARKS.items():
        if head.startswith(mark):
            return format
    if head[4:8] == b"ftyp" and head[8:12] in (b"avif", b"avis"):
        return "AVIF"
    if head[:4] == b"qoif" and len(head) > 13 and head[12] in (3, 4) and head[13] < 2:
        return "QOI"
    if head[:2] == b"BM" and head[6:10] == bytes(4) and len(head) > 17:
        # Four bytes that are zero, and the size of a header that there is.
        return "BMP" if struct.unpack_from("<I", head, 14)[0] in _BMP_HEADERS else None
    return None
