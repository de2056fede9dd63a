"""Interlaced PNG as the seven plain images that it is made of (PNG specification, 8.2).

libpng's simple way to read such a file warns of it on stderr.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from cvcli.codecs._chunks import chunk
from cvcli.codecs._png_native import SIGNATURE
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels

# First row and column of each pass, and how far apart they are.
_PASSES = (
    *((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4)),
    *((2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)),
)
_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def is_interlaced(head: bytes) -> bool:
    """Whether the body of an IHDR says so."""
    return head[12:13] == b"\1"


def passes(head: bytes, between: bytes, body: bytes, out: Pixels) -> Iterator[tuple[bytes, Pixels]]:
    """A file for each pass, and the pixels of ``out`` that it holds.

    ``head`` is the body of IHDR, ``between`` are the chunks between it and the pixels, ``body`` is
    the compressed data; ImageError if they are too short.
    """
    width, height, depth, colour = struct.unpack_from(">IIBB", head)
    bits = depth * _SAMPLES[colour]
    sizes = [
        (-(-(height - top) // down), -(-(width - left) // right))
        for top, left, down, right in _PASSES
    ]
    rows = [(1 + -(-columns * bits // 8)) * lines if columns > 0 else 0 for lines, columns in sizes]
    whole = sum(max(0, nbytes) for nbytes in rows)
    stream = zlib.decompressobj()
    data = stream.decompress(body, whole)
    # The sum behind the data is looked at when their end is met.
    stream.decompress(stream.unconsumed_tail, 1)
    if len(data) < whole or not stream.eof:
        raise ImageError("truncated PNG data")
    at = 0
    for (top, left, down, right), (lines, columns), nbytes in zip(
        _PASSES, sizes, rows, strict=True
    ):
        if lines <= 0 or columns <= 0:
            continue
        part = zlib.compress(data[at : at + nbytes], 0)
        at += nbytes
        size = struct.pack(">II", columns, lines)
        yield (
            SIGNATURE
            + chunk(b"IHDR", size + head[8:12] + b"\0")
            + between
            + chunk(b"IDAT", part)
            + chunk(b"IEND", b""),
            out[top::down, left::right],
        )
