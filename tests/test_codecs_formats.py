"""Codecs: what holds for every format, TIFF and Pillow's formats, names, limits and threads."""

import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import imagecodecs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from test_codecs import assert_fails, chunk, decoded, noise, orientation, picture, png, rows, saved

from cvcli import codecs
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError, ParameterError, UsageError


@pytest.mark.parametrize(
    "format, options", [("WEBP", {"lossless": True}), ("PNG", {}), ("GIF", {})]
)
def test_animation_gives_its_first_frame(format, options):
    frames = [Image.new("RGB", (20, 10), colour) for colour in ("red", "green", "blue")]
    frames[1].paste("white", (5, 5, 9, 9))
    data = saved(frames[0], format, save_all=True, append_images=frames[1:], **options)
    assert codecs.probe(data).frames == 3
    assert (decoded(data)[:, :, :3] == (255, 0, 0)).all()


@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_orientation_is_reported_and_not_applied(format):
    image = picture(40, 20)
    plain = decoded(saved(image, format))
    for value in range(1, 9):
        data = saved(image, format, exif=orientation(value))
        assert codecs.probe(data).orientation == value
        assert np.array_equal(decoded(data), plain)
    for bad in (0, 9, 65535):
        assert codecs.probe(saved(image, format, exif=orientation(bad))).orientation == 1


def test_turned_tiff_that_pillow_decodes():
    palette = picture(40, 20).quantize(16)
    for value in range(1, 9):
        data = saved(palette, "TIFF", exif=orientation(value))
        assert codecs.probe(data).orientation == value
        assert np.array_equal(decoded(data), np.asarray(palette.convert("RGB")))


@pytest.mark.parametrize("exif", [b"", b"II", b"II*\0\xff\xff\xff\x7f", b"MM\0*\0\0\0\x08\xff\xff"])
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_broken_exif_fails_no_file(format, exif):
    image = picture(40, 20)
    data = saved(image, format, exif=b"Exif\0\0" + exif)
    assert codecs.probe(data).orientation == 1
    assert np.array_equal(decoded(data), decoded(saved(image, format)))


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 4), st.sampled_from([np.uint8, np.uint16, np.float32]))
def test_deep_tiff_keeps_its_samples(channels, dtype):
    pixels = noise(23, 11, channels, dtype)
    data = codecs.encode(pixels, "TIFF")
    assert codecs.probe(data).spec == ImageSpec(11, 23, channels, pixels.dtype.name)
    assert np.array_equal(decoded(data), pixels)
    stored = np.ascontiguousarray(np.moveaxis(pixels, -1, 0))
    if channels > 2 and (channels == 3 or dtype != np.uint8):
        planes = imagecodecs.tiff_encode(stored, photometric="rgb", planarconfig="separate")
        assert np.array_equal(decoded(planes), pixels)


def test_tiff_modes_and_pages():
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16", "F"):
        image = Image.fromarray(noise(16, 12)).convert("L" if "I;16" in mode else mode)
        image = image.convert("I;16") if mode == "I;16" else image
        data = saved(image, "TIFF")
        out = decoded(data)
        shown = (
            image
            if mode in ("I;16", "F", "LA", "RGBA")
            else image.convert("L" if mode in ("1", "L") else "RGB")
        )
        assert np.array_equal(out, np.asarray(shown).reshape(out.shape)), mode
    lab = saved(Image.new("LAB", (4, 4), (255, 128, 128)), "TIFF")
    assert decoded(lab).min() >= 250
    wide = imagecodecs.tiff_encode(noise(9, 5).astype(np.uint32), photometric="rgb")
    assert_fails(wide, "TIFF of 3 channels of 32 bits", "isn't supported")
    pages = saved(picture(9, 5), "TIFF", save_all=True, append_images=[picture(4, 4)] * 2)
    assert codecs.probe(pages).frames == 3
    for compression in ("raw", "tiff_lzw", "jpeg"):
        data = saved(picture(90, 90), "TIFF", compression=compression)
        assert_fails(data[: len(data) // 2], "truncated TIFF")


def test_wide_integers_fit_or_fail():
    pixels = np.array([[0, 300], [65535, 7]], np.int32)
    for data in (
        saved(Image.fromarray(pixels), "TIFF"),
        b"P5 2 2 65535\n" + pixels.astype(">u2").tobytes(),
    ):
        assert np.array_equal(decoded(data)[:, :, 0], pixels)
    assert_fails(saved(Image.fromarray(pixels * 2 - 5), "TIFF"), "-5 to 131065", "16 bits")


@pytest.mark.parametrize("format", ["BMP", "PPM", "TGA", "QOI", "JPEG2000", "PCX", "DDS", "GIF"])
def test_pillow_formats_round_trip(format):
    flat = noise(20, 14) & 128
    for channels in (1, 3):
        pixels = flat[:, :, :channels]
        out = decoded(codecs.encode(pixels, format))
        assert np.array_equal(out, np.broadcast_to(pixels, out.shape))


def test_encodable_says_what_encode_says():
    cases = [
        ((9, 9, 4), "uint8", "JPEG", "JPEG can't hold an alpha channel"),
        ((9, 9, 3), "uint16", "JPEG", "JPEG can't hold uint16 pixels"),
        ((9, 9, 3), "float32", "PNG", "PNG can't hold float32 pixels"),
        ((1, 65501, 3), "uint8", "JPEG", "JPEG can't hold 65501x1 pixels: at most 65500 a side"),
        ((16384, 1, 3), "uint8", "WEBP", "WEBP can't hold 1x16384 pixels: at most 16383 a side"),
        ((9, 9, 4), "uint8", "BMP", "BMP can't hold an alpha channel"),
        ((9, 9, 3), "uint16", "GIF", "GIF can't hold uint16 pixels"),
        ((9, 9, 3), "uint8", "EPS", "EPS can't be written"),
    ]
    for shape, dtype, format, reason in cases:
        assert codecs.encodable(ImageSpec(*shape, dtype), format) == reason
        with pytest.raises(ImageError) as caught:
            codecs.encode(np.zeros(shape, dtype), format)
        assert str(caught.value) == reason
    with pytest.raises(ParameterError):
        codecs.encode(noise(4, 4), "JPEG", quality=0)


def test_not_images():
    assert_fails(b"", "empty")
    for data in (b"hello world\n" * 50, b"\0" * 500, b"%PDF-1.4\n", b"%!PS-Adobe-3.0 EPSF-3.0\n"):
        assert_fails(data, "not an image")
    with pytest.raises(ImageError):
        codecs.decode(
            saved(picture(4, 4)), codecs.probe(saved(picture(5, 4))), np.empty((4, 5, 3), "u1")
        )


def test_bomb_is_refused_by_its_header():
    bomb = png(60000, 60000, 1, 0, b"\0" * 7501 * 100)
    bmp = bytearray(saved(picture(1, 1), "BMP"))
    bmp[18:26] = struct.pack("<ii", 60000, 60000)
    for data in (bomb, bytes(bmp)):
        with pytest.raises(ImageError, match="60000x60000 is 3600000000 pixels") as caught:
            codecs.probe(data)
        assert "--max-pixels 3600000000" in caught.value.tip
        assert codecs.probe(data, max_pixels=None).spec.width == 60000


def test_names_and_suffixes():
    assert [codecs.format_for_suffix(s) for s in (".JPG", ".jpeg", ".tif", ".eps", ".x")] == [
        *["JPEG"] * 2,
        "TIFF",
        None,
        None,
    ]
    assert [codecs.suffix_for_format(f) for f in ("JPEG", "PPM", "TIFF")] == [
        ".jpg",
        ".ppm",
        ".tiff",
    ]
    assert [codecs.format_by_name(n) for n in ("jpg", "JPEG", "Tif")] == ["JPEG", "JPEG", "TIFF"]
    with pytest.raises(UsageError) as caught:
        codecs.format_by_name("pngg")
    assert "did you mean png?" in caught.value.tip
    readable = codecs.readable_suffixes()
    assert {".jpg", ".png", ".webp", ".tif", ".gif", ".mpo"} <= readable
    assert not {".pdf", ".eps", ".ps", ".mpg", ".wmf", ".emf", ".h5", ".grib"} & readable
    assert {"imagecodecs", "libjpeg-turbo", "libpng", "libwebp", "Pillow"} <= set(codecs.versions())


def test_import_is_cheap_and_doubts_stay_off_the_terminal(tmp_path):
    extra = chunk(b"iCCP", b"junk\0\0zz") + chunk(b"tIME", b"1")
    (tmp_path / "a").write_bytes(png(2, 2, 8, 2, rows(noise(2, 2)), extra))
    tiff = saved(picture(90, 90), "TIFF", compression="tiff_lzw")
    (tmp_path / "b").write_bytes(tiff[:60])
    (tmp_path / "c").write_bytes(saved(Image.new("L", (12000, 9000)), "GIF"))
    code = """if 1:
        import sys, pathlib, cvcli.codecs as codecs
        assert not {"numpy", "PIL", "imagecodecs"} & set(sys.modules)
        import numpy as np
        for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
            data = path.read_bytes()
            try:
                header = codecs.probe(data)
                if header.spec.nbytes < 1000:
                    codecs.decode(data, header, np.empty(header.spec.shape, header.spec.dtype))
            except codecs.ImageError as error:
                print(path.name, error)
    """
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout == "b truncated TIFF header\n"


def test_many_threads_at_once():
    formats = ("JPEG", "PNG", "WEBP", "TIFF", "BMP", "GIF")
    files = [codecs.encode(noise(64, 48) & 128, format) for format in formats]
    expected = [decoded(data) for data in files]
    with ThreadPoolExecutor(16) as pool:
        for index, out in enumerate(pool.map(decoded, files * 30)):
            assert np.array_equal(out, expected[index % len(files)])


@pytest.mark.parametrize(
    "format, limit",
    [("AVIF", 32768), ("GIF", 65535), ("PCX", 65534), ("SGI", 65535), ("TGA", 65535)],
)
@pytest.mark.parametrize("upright", [False, True])
def test_the_longest_side_of_a_format_comes_back_and_one_more_is_refused(format, limit, upright):
    def image(side):
        return np.zeros((side, 1, 3) if upright else (1, side, 3), np.uint8)

    assert decoded(codecs.encode(image(limit), format)).shape == image(limit).shape
    with pytest.raises(ImageError, match=f"{format} can't hold .* at most {limit} a side"):
        codecs.encode(image(limit + 1), format)
