"""Codecs against Pillow and OpenCV, and every odd file that batch tools are known to get wrong."""

import io
import struct
import sys
import zlib

import cv2
import imagecodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from PIL import Image

from cvcli import codecs
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

# cjpeg -arithmetic of 7x9 noise.
ARITHMETIC = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb004300030202030202030303030403030405080505040405"
    "0a070706080c0a0c0c0b0a0b0b0d0e12100d0e110e0b0b1016101113141515150c0f171816141812141514ffdb00"
    "430103040405040509050509140d0b0d141414141414141414141414141414141414141414141414141414141414"
    "1414141414141414141414141414141414141414ffc90011080007000903012200021101031101ffcc000a001010"
    "0501101105ffda000c03010002110311003f00d1bd6030e89c6879f7fe0e02981d8893261825277aaac6efb368f8"
    "65703a0c325eea5983bbd99dc73a22b95dd93da35cd9c1bba4957003b5b05385173421cbc55beef6bbdd307b458f"
    "ec9ba0730fb812a0e215ac7e91d9039dce5e2581e233d8709b9ae3c7cb373b1e45d6e0933a1e655b7164ad66d5b5"
    "50737d7ed9e8591c9282662635ed4637233ce0ffd9"
)
RNG = np.random.default_rng(0)


def noise(width, height, channels=3, dtype=np.uint8):
    top = 1.0 if dtype == np.float32 else np.iinfo(dtype).max
    return (RNG.random((height, width, channels)) * top).astype(dtype)


def picture(width, height, channels=3):
    pixels = noise(width, height, channels)
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)


def saved(image, format="JPEG", **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def orientation(value):
    exif = Image.Exif()
    exif[0x112] = value
    return exif


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(width, height, depth, colour, raw, extra=b"", interlace=0):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlace)
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(raw))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


def rows(pixels):
    return b"".join(b"\0" + row.tobytes() for row in pixels)


def drop_app14(data):
    at = data.find(b"\xff\xee")
    return data[:at] + data[at + 2 + struct.unpack(">H", data[at + 2 : at + 4])[0] :]


def decoded(data):
    header = codecs.probe(data)
    out = np.empty(header.spec.shape, header.spec.dtype)
    codecs.decode(data, header, out)
    return out


def by_pillow(data, mode):
    array = np.asarray(Image.open(io.BytesIO(data)).convert(mode))
    return array.reshape(*array.shape[:2], -1)


def assert_fails(data, *words):
    with pytest.raises(ImageError) as caught:
        decoded(data)
    message = str(caught.value)
    assert "\n" not in message and not message.endswith(".")
    assert all(word in message for word in words), message


# JPEG


@pytest.mark.parametrize("sampling", ["4:4:4", "4:2:2", "4:2:0", "4:1:1"])
@pytest.mark.parametrize("progressive", [False, True])
@pytest.mark.parametrize("size", [(1, 1), (17, 33), (200, 101)])
def test_jpeg_pixels_are_pillows(sampling, progressive, size):
    data = saved(picture(*size), subsampling=sampling, progressive=progressive)
    assert np.array_equal(decoded(data), by_pillow(data, "RGB"))


def test_odd_jpegs_are_pillows():
    gray = saved(picture(33, 21, 1))
    assert codecs.probe(gray).spec.channels == 1
    lossless = imagecodecs.jpeg8_encode(noise(20, 10), lossless=True)
    rgb = saved(picture(33, 21), keep_rgb=True)
    for data, mode in ((gray, "L"), (ARITHMETIC, "RGB"), (lossless, "RGB"), (rgb, "RGB")):
        assert np.array_equal(decoded(data), by_pillow(data, mode))


def test_cmyk_jpeg_is_red_with_and_without_adobe_marker():
    data = saved(Image.new("CMYK", (16, 16), (0, 255, 255, 0)))
    assert codecs.probe(data).mode == "CMYK"
    for file in (data, drop_app14(data)):
        assert (decoded(file) == (255, 0, 0)).all()
    noisy = saved(Image.fromarray(noise(40, 30, 4), "CMYK"))
    assert np.array_equal(decoded(noisy), by_pillow(noisy, "RGB"))


@pytest.mark.parametrize("channels", [1, 3])
def test_twelve_bit_jpeg_spans_all_of_uint16(channels):
    pixels = np.repeat(np.array([[[0], [4095]]], np.uint16), channels, 2).repeat(8, 0).repeat(8, 1)
    stored = pixels[:, :, 0] if channels == 1 else pixels
    data = imagecodecs.jpeg8_encode(stored, level=100, bitspersample=12)
    assert np.abs(decoded(data).astype(int) - np.where(pixels > 0, 65535, 0)).max() < 100


def test_truncated_jpeg():
    for options in ({}, {"progressive": True}):
        data = saved(picture(200, 200), exif=orientation(6), **options)
        for cut in (len(data) // 2, -2, -1):
            assert_fails(data[:cut], "truncated JPEG data")
        assert_fails(data[:100], "truncated JPEG header")
        assert np.array_equal(decoded(data + b"trailing \xff\xd9 garbage"), decoded(data))


def test_multi_picture_jpeg_gives_its_first():
    first, second = picture(40, 30), picture(40, 30)
    data = saved(first, "MPO", save_all=True, append_images=[second])
    header = codecs.probe(data)
    assert (header.format, header.frames) == ("JPEG", 2)
    assert np.array_equal(decoded(data), by_pillow(data, "RGB"))


def test_jpeg_encode_is_libjpeg_turbos():
    wide = noise(70, 40)
    for pixels in (wide, wide[:, 5:50], wide[::-1], wide[:, ::-1], wide[:, :, ::-1]):
        plain = Image.fromarray(np.ascontiguousarray(pixels))
        assert codecs.encode(pixels, "JPEG") == saved(plain, quality=90)
        assert codecs.encode(pixels, "JPEG", quality=30) == saved(plain, quality=30)
    gray = codecs.encode(wide[:, :, :1], "JPEG")
    assert np.array_equal(decoded(gray), by_pillow(gray, "L"))


# PNG


@settings(deadline=None, max_examples=80)
@given(
    hnp.arrays(
        st.sampled_from([np.uint8, np.uint16]),
        st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 4)),
    )
)
def test_png_and_tiff_round_trip(pixels):
    for format in ("PNG", "TIFF"):
        data = codecs.encode(pixels, format)
        assert np.array_equal(decoded(data), pixels)
        assert data == codecs.encode(pixels.copy(), format)
    assert np.array_equal(decoded(codecs.encode(pixels[:, ::-1], "PNG")), pixels[:, ::-1])


def test_png_by_outside_readers():
    for pixels in (noise(31, 17), np.zeros((40, 40, 3), np.uint8), noise(31, 17, 3, np.uint16)):
        for format in ("PNG", "TIFF"):
            data = np.frombuffer(codecs.encode(pixels, format), np.uint8)
            assert np.array_equal(cv2.imdecode(data, -1)[:, :, ::-1], pixels)


@pytest.mark.parametrize("colour, channels", [(0, 1), (2, 3), (4, 2), (6, 4)])
def test_sixteen_bit_png_stays(colour, channels):
    pixels = noise(9, 7, channels, np.uint16)
    data = png(9, 7, 16, colour, rows(pixels.astype(">u2")))
    assert codecs.probe(data).spec == ImageSpec(7, 9, channels, "uint16")
    assert np.array_equal(decoded(data), pixels)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_shallow_gray_png_spans_all_of_uint8(depth):
    data = png(8, 1, depth, 0, b"\0" + bytes([0b10110001] * depth))
    assert np.array_equal(decoded(data), by_pillow(data, "L"))
    assert codecs.probe(data).mode == ("1" if depth == 1 else "L")


def test_palette_and_key_colours_become_rgb_and_alpha():
    palette = picture(9, 9).quantize(8)
    gray, rgb = picture(9, 9, 1), Image.fromarray(noise(9, 9) & 128)
    cases = [
        (saved(palette, "PNG"), "RGB"),
        (saved(palette, "PNG", transparency=0), "RGBA"),
        (saved(palette, "PNG", transparency=b"\x00\x80\xff"), "RGBA"),
        (saved(gray, "PNG", transparency=gray.getpixel((3, 3))), "LA"),
        (saved(rgb, "PNG", transparency=rgb.getpixel((3, 3))), "RGBA"),
        (saved(palette, "GIF"), "RGB"),
        (saved(palette, "GIF", transparency=0), "RGBA"),
    ]
    for data, mode in cases:
        assert np.array_equal(decoded(data), by_pillow(data, mode))
    key = chunk(b"tRNS", struct.pack(">H", 300))
    deep = png(2, 1, 16, 0, rows(np.array([[299, 300]], ">u2")), key)
    assert decoded(deep).tolist() == [[[299, 65535], [300, 0]]]
    wrong = png(2, 1, 8, 2, rows(noise(2, 1)), key)
    assert decoded(wrong).shape == (1, 2, 3)


def test_interlaced_png():
    pixels = noise(13, 11)
    steps = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2)]
    passes = [pixels[y::dy, x::dx] for x, y, dx, dy in [*steps, (0, 1, 1, 2)]]
    data = png(13, 11, 8, 2, b"".join(rows(part) for part in passes), interlace=1)
    assert np.array_equal(by_pillow(data, "RGB"), pixels)
    assert np.array_equal(decoded(data), pixels)


def test_broken_png():
    data = saved(picture(100, 100), "PNG")
    for cut in (len(data) // 2, -20, -12, -4):
        assert_fails(data[:cut], "truncated PNG data")
    assert_fails(data[:20], "truncated PNG header")
    assert_fails(png(60, 60, 8, 2, rows(noise(60, 30))), "truncated PNG data")
    assert_fails(data[:5000] + bytes([data[5000] ^ 255]) + data[5001:], "corrupt PNG data: IDAT")
    assert_fails(png(4, 4, 3, 2, b""), "corrupt PNG header")
    for size in ((0, 5), (5, 0)):
        assert_fails(png(*size, 8, 2, b""), "no pixels")


# WebP


@settings(deadline=None, max_examples=30)
@given(
    hnp.arrays(np.uint8, st.tuples(st.integers(1, 40), st.integers(1, 40), st.sampled_from([3, 4])))
)
def test_webp_lossless_round_trip(pixels):
    out = decoded(codecs.encode(pixels, "WEBP", quality=100))
    # libwebp leaves an opaque alpha channel out.
    assert np.array_equal(out, pixels[:, :, : out.shape[2]])
    assert (pixels[:, :, out.shape[2] :] == 255).all()


@pytest.mark.parametrize("channels", [3, 4])
@pytest.mark.parametrize("options", [{}, {"lossless": True}, {"exact": True, "exif": b"Exif\0\0"}])
def test_webp_pixels_are_pillows(channels, options):
    data = saved(picture(40, 31, channels), "WEBP", **options)
    assert np.array_equal(decoded(data), by_pillow(data, ["RGB", "RGBA"][channels - 3]))
    for cut in (len(data) // 2, -2):
        assert_fails(data[:cut], "truncated WEBP data")
    assert_fails(data[:16], "truncated WEBP header")


def test_webp_encode():
    pixels = noise(40, 30, 4)
    lossy = codecs.encode(pixels, "WEBP")
    assert np.array_equal(decoded(lossy)[:, :, 3], pixels[:, :, 3])
    assert lossy == saved(Image.fromarray(pixels), "WEBP", quality=80, method=2)
    gray = decoded(codecs.encode(pixels[:, :, :2], "WEBP", quality=100))
    assert np.array_equal(gray, pixels[:, :, [0, 0, 0, 1]])


@pytest.mark.parametrize("format", ("JPEG", "PNG", "WEBP", "TIFF"))
def test_a_library_that_is_not_there_is_not_the_files_fault(monkeypatch, format):
    """As on an interpreter that it has not been built for."""
    data = codecs.encode(noise(9, 7), format)
    header = codecs.probe(data)
    monkeypatch.setitem(sys.modules, "imagecodecs", None)
    with pytest.raises(ImageError, match=r"can't decode .*imagecodecs") as reading:
        codecs.decode(data, header, np.empty(header.spec.shape, np.uint8))
    with pytest.raises(ImageError, match=r"can't encode .*imagecodecs"):
        codecs.encode(noise(9, 7, dtype=np.uint16 if format in ("PNG", "TIFF") else "u1"), format)
    assert reading.value.tip == "pip install --upgrade imagecodecs pillow"
