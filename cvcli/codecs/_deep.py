"""Depths that are read as 8 bits: Pillow cuts them without a word, so the files are asked here."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

_PPM_HEAD = re.compile(rb"P[356](?:\s+|#[^\n]*\n)+\d+(?:\s+|#[^\n]*\n)+\d+(?:\s+|#[^\n]*\n)+(\d+)")
# Which bits of the configuration of an AV1 picture tell its depth.
_HIGH, _TWELVE = 0x40, 0x20


def _avif(data: bytes) -> int:
    at = data.find(b"av1C")
    if at < 0 or at + 7 > len(data) or not data[at + 6] & _HIGH:
        return 8
    return 12 if data[at + 6] & _TWELVE else 10


def _jpeg_2000(data: bytes) -> int:
    """Of the first component in the size marker of the code stream."""
    at = data.find(b"\xff\x4f\xff\x51")
    return (data[at + 42] & 0x7F) + 1 if at >= 0 and at + 42 < len(data) else 8


def _ppm(data: bytes) -> int:
    match = _PPM_HEAD.match(data)
    return int(match[1]).bit_length() if match else 8


def _sgi(data: bytes) -> int:
    return 8 * data[3]


def _psd(data: bytes) -> int:
    return int(struct.unpack_from(">H", data, 22)[0])


_BITS: dict[str, Callable[[bytes], int]] = {
    "AVIF": _avif,
    "JPEG2000": _jpeg_2000,
    "PPM": _ppm,
    "SGI": _sgi,
    "PSD": _psd,
}


def loss(data: bytes, format: str, dtype: str) -> str | None:
    """What is lost of a file whose pixels are read as ``dtype``; None if nothing is."""
    bits = _BITS[format](data) if format in _BITS else 8
    return f"{bits}-bit pixels are read as 8-bit" if bits > 8 and dtype == "uint8" else None
