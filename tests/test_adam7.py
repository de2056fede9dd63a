"""Interlaced PNG: the pixels of a second reader, and no words of libpng's."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from cvcli import codecs
from cvcli.codecs._chunks import chunk
from cvcli.errors import ImageError

KINDS = ((0, 1), (0, 2), (0, 4), (0, 8), (2, 8), (3, 1), (3, 2), (3, 4), (3, 8), (4, 8), (6, 8))
DEEP = ((0, 16), (2, 16), (4, 16), (6, 16))
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2))
PASSES += ((1, 0, 2, 1),)


def interlaced(width, height, colour, depth, transparent=False, seed=0):
    """A file of random bytes, rows filtered in every way."""
    random, rows = np.random.default_rng(seed), []
    for top, left, down, right in PASSES:
        lines, columns = len(range(top, height, down)), len(range(left, width, right))
        for _ in range(lines if columns else 0):
            nbytes = -(-columns * depth * SAMPLES[colour] // 8)
            rows.append(bytes([random.integers(0, 5)]) + random.bytes(nbytes))
    parts = [chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 1))]
    if colour == 3:
        parts.append(chunk(b"PLTE", random.bytes(3 * 2**depth)))
    if transparent:
        parts.append(chunk(b"tRNS", bytes(range(2**depth)) if colour == 3 else bytes(2)))
    body = zlib.compress(b"".join(rows))
    parts += [chunk(b"IDAT", body[:5]), chunk(b"IDAT", body[5:]), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def decoded(data):
    header = codecs.probe(data)
    out = np.zeros(header.spec.shape, header.spec.dtype)
    codecs.decode(data, header, out)
    return out


@pytest.mark.parametrize("size", ((1, 1), (2, 3), (5, 4), (8, 8), (33, 21)))
@pytest.mark.parametrize("colour, depth", KINDS)
def test_pixels_are_those_of_pillow(colour, depth, size):
    for transparent in (False, True) if colour == 3 else (False,):
        data = interlaced(*size, colour, depth, transparent)
        found = decoded(data)
        mode = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}[found.shape[2]]
        wanted = np.asarray(Image.open(io.BytesIO(data)).convert(mode)).reshape(found.shape)
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("colour, depth", DEEP)
def test_deep_pixels_are_whole(colour, depth):
    """Without filters the bytes are the samples, pass by pass."""
    width, height, count = 21, 13, SAMPLES[colour]
    wanted = np.random.default_rng(1).integers(0, 65536, (height, width, count)).astype(np.uint16)
    rows = b"".join(
        b"\0" + row.astype(">u2").tobytes()
        for top, left, down, right in PASSES
        for row in wanted[top::down, left::right]
    )
    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 1)
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        chunk(*part) for part in ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    )
    np.testing.assert_array_equal(decoded(data), wanted)


def test_broken_ones_are_told():
    data = interlaced(33, 21, 2, 8)
    start = data.index(b"IDAT", data.index(b"IDAT") + 4)
    for at in (start + 9, start - 12, len(data) - 14):
        broken = bytearray(data)
        broken[at] ^= 0x55
        with pytest.raises(ImageError, match="PNG data"):
            decoded(bytes(broken))
    short = data[: start + 40] + struct.pack(">I", zlib.crc32(data[start : start + 40]))
    size = struct.pack(">I", 36)
    with pytest.raises(ImageError, match="truncated PNG data"):
        decoded(short[: start - 4] + size + short[start:] + chunk(b"IEND", b""))


def test_nothing_is_said_of_them(tmp_path):
    """In a process of its own: pytest listens to every library."""
    (tmp_path / "a.png").write_bytes(interlaced(33, 21, 2, 16))
    words = [sys.executable, "-m", "cvcli", "invert", "a.png", "b.png", "-q", "--device", "cpu"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
