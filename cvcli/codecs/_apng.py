"""Animated PNG: frames of the PNG encoder put together, at any depth.

A frame is a PNG's own pixel chunks under another name, each with a running number, behind a chunk
that says where and how long it shows. The first frame is the picture that other readers show.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from cvcli.codecs._chunks import chunk

_HEAD = 33
_MOST_MS = 65535


def joined(files: Sequence[bytes], durations: Sequence[float], plays: int) -> bytes:
    """One file of PNG files of equal size and kind; durations in ms, ``plays`` 0 is endless."""
    parts = [files[0][:_HEAD], chunk(b"acTL", struct.pack(">II", len(files), plays))]
    size, number = files[0][16:24], 0
    for index, (file, duration) in enumerate(zip(files, durations, strict=True)):
        shown = struct.pack(">HH", *_fraction(duration)) + b"\0\0"
        control = struct.pack(">I", number) + size + bytes(8) + shown
        parts.append(chunk(b"fcTL", control))
        number += 1
        for body in _pixels(file):
            if index == 0:
                parts.append(chunk(b"IDAT", body))
            else:
                parts.append(chunk(b"fdAT", struct.pack(">I", number) + body))
                number += 1
    return b"".join(parts) + chunk(b"IEND", b"")


def _fraction(duration: float) -> tuple[int, int]:
    """Milliseconds as a fraction of a second of 16 bits each."""
    thousandths = max(0, round(duration))
    if thousandths <= _MOST_MS:
        return thousandths, 1000
    return min(_MOST_MS, round(duration / 1000)), 1


def _chunks(file: bytes) -> list[tuple[bytes, bytes]]:
    found, at = [], 8
    while at + 12 <= len(file):
        size, kind = struct.unpack_from(">I4s", file, at)
        found.append((kind, file[at + 8 : at + 8 + size]))
        at += 12 + size
    return found


def _pixels(file: bytes) -> list[bytes]:
    return [body for kind, body in _chunks(file) if kind == b"IDAT"]


def durations(data: bytes) -> list[float]:
    """How long each frame of a file shows, in ms."""
    times = []
    for kind, body in _chunks(data):
        if kind == b"fcTL" and len(body) == 26:
            above, below = struct.unpack_from(">HH", body, 20)
            times.append(1000 * above / (below or 100))
    return times
