"""PNG by our own filters and deflate, next to zlib, libpng and Pillow."""

from __future__ import annotations

import ctypes
import io
import struct
import zlib

import imagecodecs
import numpy as np
import pytest
from conftest import noise
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import cvcli.codecs as codecs
from cvcli.codecs import _png_native
from cvcli.devices.cpu import SIMD_LEVELS, load_library, simd_level
from cvcli.errors import ImageError

LEVELS = SIMD_LEVELS[: SIMD_LEVELS.index(simd_level()) + 1]
GUARD = 64


def skewed(rng, shape, kind):
    """Bytes as filtered photographs, drawings, noise and worse have them."""
    if kind == "noise":
        return rng.integers(0, 256, shape, np.uint8)
    if kind == "flat":
        return np.full(shape, rng.integers(256), np.uint8)
    if kind == "steep":
        # Each value half as often as the one before: codes longer than deflate allows.
        return np.minimum(rng.geometric(0.5, shape) * 7, 255).astype(np.uint8)
    if kind == "runs":
        return np.repeat(rng.integers(0, 256, shape[0] * shape[1] * shape[2], np.uint8),
                         rng.integers(1, 600))[: np.prod(shape)].reshape(shape)  # fmt: skip
    return np.cumsum(rng.normal(0, 3, shape), 1).astype(np.int64).astype(np.uint8)


def deflated(level, image):
    """The zlib stream of an image at a SIMD level; what is behind its room stays as it was."""
    library, size = load_library(level), ctypes.c_int64
    for name in ("most", "scratch", "deflate"):
        getattr(library, f"cvcli_png_{name}").restype = size
    height, width, channels = image.shape
    row = width * channels
    room = np.full(library.cvcli_png_most(size(height), size(row)) + GUARD, 7, np.uint8)
    rows = np.full(library.cvcli_png_scratch(size(row)) + GUARD, 7, np.uint8)
    count = library.cvcli_png_deflate(
        ctypes.c_void_p(image.ctypes.data), size(image.strides[0]), size(height), size(row),
        ctypes.c_int32(channels), ctypes.c_void_p(rows.ctypes.data),
        ctypes.c_void_p(room.ctypes.data),
    )  # fmt: skip
    assert (room[-GUARD:] == 7).all() and (rows[-GUARD:] == 7).all()
    return room[:count].tobytes()


@settings(max_examples=60)
@given(
    st.tuples(st.integers(1, 80), st.integers(1, 1500), st.integers(1, 4)),
    st.sampled_from(["noise", "flat", "steep", "runs", "photo"]),
    st.integers(0, 2**32 - 1),
)
def test_zlib_reads_what_is_written_and_every_level_writes_the_same(shape, kind, seed):
    image = skewed(np.random.default_rng(seed), shape, kind)
    streams = {deflated(level, image) for level in LEVELS}
    assert len(streams) == 1
    (stream,) = streams
    raw = zlib.decompress(stream)
    assert len(raw) == shape[0] * (1 + shape[1] * shape[2])
    file = _png_native.encode(image)
    assert file is not None and stream in file
    for decode in (imagecodecs.png_decode, lambda data: np.asarray(Image.open(io.BytesIO(data)))):
        assert (decode(file).reshape(shape) == image).all()


@pytest.mark.parametrize("shape", [(300, 7000, 3), (3, 120_000, 4), (700, 1, 1)])
def test_rows_longer_than_a_block_and_many_blocks(shape):
    for kind in ("noise", "photo", "flat"):
        image = skewed(np.random.default_rng(1), shape, kind)
        assert (imagecodecs.png_decode(_png_native.encode(image)).reshape(shape) == image).all()


def test_rows_that_lie_apart():
    whole = noise((40, 60, 3), "uint8")
    part = whole[5:35, 10:40]
    assert (imagecodecs.png_decode(codecs.encode(part, "PNG")) == part).all()


def parts(file, size):
    """The file with its pixels in IDAT chunks of ``size`` bytes."""
    header = codecs.probe(file)
    assert header.format == "PNG"
    at, head, body = 8, file[:33], b""
    while at < len(file):
        (count,) = struct.unpack_from(">I", file, at)
        if file[at + 4 : at + 8] == b"IDAT":
            body += file[at + 8 : at + 8 + count]
        at += 12 + count
    chunks = [(b"IDAT", body[i : i + size]) for i in range(0, len(body), size)] + [(b"IEND", b"")]
    return head + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )


def decoded(file, monkeypatch=None):
    """Pixels, and whether they were decoded here."""
    ours = []
    real = _png_native.decode

    def noting(*arguments):
        ours.append(real(*arguments))
        return ours[-1]

    header = codecs.probe(file)
    out = np.full(header.spec.shape, 99, header.spec.dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_png_native, "decode", noting)
        codecs.decode(file, header, out)
    return out, ours == [True]


@pytest.mark.parametrize(
    "filter", [8, 16, 32, 64, 128, 248], ids=["none", "sub", "up", "mean", "paeth", "all"]
)
@pytest.mark.parametrize("channels", (1, 2, 3, 4))
def test_every_filter_is_undone(filter, channels):
    image = np.cumsum(noise((37, 53, channels), "uint8") % 9, 1).astype(np.uint8)
    plain = image[:, :, 0] if channels == 1 else image
    file = imagecodecs.png_encode(plain, level=1, filter=filter)
    for data in (file, parts(file, 100), parts(file, 1)):
        out, ours = decoded(data)
        assert ours and (out == image).all()


@pytest.mark.parametrize("channels", (3, 4))
def test_paeth_is_undone_at_every_width(channels):
    for width in range(1, 13):
        image = noise((9, width, channels), "uint8", seed=width)
        image[::2] = image[::2] // 255 * 255  # differences of all signs and of the largest size
        file = imagecodecs.png_encode(image, level=1, filter=128)
        out, ours = decoded(file)
        assert ours and (out == image).all()


def test_what_is_unusual_is_left_to_libpng():
    image = noise((20, 30, 3), "uint8")
    for picture, options in (
        (Image.fromarray(image).quantize(16), {}),
        (Image.fromarray(image), {"transparency": (1, 2, 3)}),
        (Image.fromarray(image[:, :, 0] > 99), {}),
    ):
        file = io.BytesIO()
        picture.save(file, "PNG", **options)
        assert not decoded(file.getvalue())[1]
    assert not decoded(imagecodecs.png_encode(noise((20, 30, 3), "uint16")))[1]


def with_stream(file, stream):
    """The file with another zlib stream."""
    body = struct.pack(">I", len(stream)) + b"IDAT" + stream
    return file[:33] + body + struct.pack(">I", zlib.crc32(body[4:])) + file[-12:]


def test_faults_are_told_as_by_libpng():
    image = noise((20, 30, 3), "uint8")
    file = imagecodecs.png_encode(image)
    raw = zlib.decompress(file[41:-16])
    for wrong in (
        file[:60] + bytes([file[60] ^ 1]) + file[61:],
        with_stream(file, zlib.compress(raw[:-50])),
        with_stream(file, zlib.compress(raw)[:-1] + b"!"),
        with_stream(file, zlib.compress(b"\x09" + raw[1:])),
    ):
        with pytest.raises(ImageError):
            decoded(wrong)
    # Bytes behind the last row are no fault for libpng.
    out, _ = decoded(with_stream(file, zlib.compress(raw + b"more")))
    assert (out == image).all()
