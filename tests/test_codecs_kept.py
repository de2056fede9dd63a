"""How a file was coded, its depth, alpha and colours: kept, or converted and said."""

import io
import json
import struct
from pathlib import Path

import cv2
import imagecodecs
import numpy as np
import pytest
from conftest import noise
from PIL import Image, ImageCms
from test_cli import FLIP, load
from test_codecs import chunk, decoded, drop_app14, png, rows
from test_metadata import SRGB, opened, run, saved

from cvcli import codecs
from cvcli.codecs import _quality
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError, ParameterError

PHOTO = cv2.GaussianBlur(noise((160, 240, 3), "uint8"), (0, 0), 2)
# sRGB with the names of red and green exchanged.
SWAPPED = SRGB.replace(b"rXYZ", b"____", 1).replace(b"gXYZ", b"rXYZ", 1)
SWAPPED = SWAPPED.replace(b"____", b"gXYZ", 1)
LINEAR = bytes(imagecodecs.cms_profile("gray", gamma=1.0))


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notes(report="r.json"):
    return json.loads(Path(report).read_text())["images"][0]["notes"]


# JPEG


@pytest.mark.parametrize("sampling", ["4:4:4", "4:2:2", "4:2:0"])
@pytest.mark.parametrize("quality", [1, 24, 50, 75, 90, 92, 97, 100])
def test_quality_and_subsampling_are_told_and_kept(quality, sampling):
    data = saved(Image.fromarray(PHOTO), "JPEG", quality=quality, subsampling=sampling)
    Path("a.jpg").write_bytes(data)
    coding = codecs.probe(data).coding
    assert (coding.level, coding.sampling) == (quality, sampling.replace(":", ""))
    assert not coding.tables
    run(*FLIP, "a.jpg", "b.jpg")
    run(*FLIP, "b.jpg", "c.jpg")
    before, after = opened("a.jpg"), opened("c.jpg")
    assert after.quantization == before.quantization and after.layer == before.layer
    # Where the tables divide by 1 the rounding of the pixels counts.
    assert Path("c.jpg").stat().st_size < len(data) * (1.02 if quality < 100 else 1.06) + 50
    # Whole blocks, the same tables: the second generation is next to the first.
    assert np.abs(load(Path("c.jpg")).astype(int) - load(Path("a.jpg"))).mean() < 1.5


def test_tables_of_no_quality_are_used_again():
    rng = np.random.default_rng(1)
    tables = [[int(v) for v in rng.integers(2, 40, 64)] for _ in range(2)]
    data = saved(Image.fromarray(PHOTO), "JPEG", qtables=tables, subsampling="4:2:2")
    Path("a.jpg").write_bytes(data)
    run(*FLIP, "a.jpg", "b.jpg")
    before, after = opened("a.jpg"), opened("b.jpg")
    assert after.quantization == before.quantization and after.layer == before.layer
    run(*FLIP, "--quality", 60, "a.jpg", "c.jpg")
    assert opened("c.jpg").quantization == {
        number: list(table) for number, table in enumerate(_quality.scaled(60))
    }
    gray = saved(Image.fromarray(PHOTO[:, :, 0]), "JPEG", qtables=tables[:1])
    Path("g.jpg").write_bytes(gray)
    run(*FLIP, "g.jpg", "h.jpg")
    assert opened("h.jpg").quantization == opened("g.jpg").quantization


@pytest.mark.parametrize("quality", [*range(1, 101, 9), 100])
def test_scaled_tables_are_libjpegs(quality):
    file = opened_bytes(saved(Image.fromarray(PHOTO), "JPEG", quality=quality))
    luma, chroma = _quality.scaled(quality)
    assert file.quantization == {0: list(luma), 1: list(chroma)}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("tables", [None, [[3] * 64, [4] * 64]])
def test_a_file_with_codes_of_its_own_gets_them_again(channels, tables):
    image = Image.fromarray(PHOTO[:, :, 0] if channels == 1 else PHOTO)
    options = {"quality": 88} if tables is None else {"qtables": tables[: (channels + 1) // 2]}
    options |= {"subsampling": "4:2:0"} if channels == 3 else {}
    for optimize in (False, True):
        data = saved(image, "JPEG", optimize=optimize, **options)
        assert codecs.probe(data).coding.optimized is optimize
        Path("a.jpg").write_bytes(data)
        run(*FLIP, "--overwrite", "a.jpg", "b.jpg")
        turned = opened("a.jpg").transpose(Image.Transpose.ROTATE_180)
        wanted = saved(turned, "JPEG", optimize=optimize, **options)
        assert Path("b.jpg").read_bytes() == wanted
        assert codecs.probe(Path("b.jpg").read_bytes()).coding.optimized is optimize
    assert codecs.probe(saved(image, "JPEG", progressive=True)).coding.optimized


def opened_bytes(data):
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


def test_asked_quality_wins_and_other_formats_have_their_own():
    Path("a.jpg").write_bytes(saved(Image.fromarray(PHOTO), "JPEG", quality=40))
    for words, quality in (((), 40), (("--quality", "keep"), 40), (("--quality", "77"), 77)):
        run(*FLIP, "--overwrite", *words, "a.jpg", "b.jpg")
        assert codecs.probe(Path("b.jpg").read_bytes()).coding.level == quality
    Image.fromarray(PHOTO).save("a.png")
    run(*FLIP, "--overwrite", "a.png", "b.jpg")
    assert codecs.probe(Path("b.jpg").read_bytes()).coding.level == 90
    for bad in ("0", "101", "best", "-1", "", "7.5"):
        run(*FLIP, "--quality", bad, "a.jpg", "c.jpg", code=2)


def test_webp_stays_lossless_or_lossy():
    pixels = noise((20, 31, 4), "uint8")
    for lossless in (True, False):
        Image.fromarray(pixels).save("a.webp", lossless=lossless, exact=True)
        assert codecs.probe(Path("a.webp").read_bytes()).coding.lossless is lossless
        run(*FLIP, "--overwrite", "a.webp", "b.webp")
        assert codecs.probe(Path("b.webp").read_bytes()).coding.lossless is lossless
        if lossless:
            np.testing.assert_array_equal(load(Path("b.webp")), pixels[::-1, ::-1])


# What makes new pixels: those that only move stay CMYK where they can.
BLUR = ["averageblur", "--size", "3"]


@pytest.mark.parametrize("adobe", [True, False])
@pytest.mark.parametrize("target", ["jpg", "png", "tif", "webp"])
def test_cmyk_is_red_and_that_is_said(adobe, target):
    data = saved(Image.new("CMYK", (16, 16), (0, 255, 255, 0)), "JPEG", quality=100)
    Path("a.jpg").write_bytes(data if adobe else drop_app14(data))
    run(*BLUR, "--strip-all", "a.jpg", f"b.{target}", "--report", "r.json")
    assert np.abs(load(Path(f"b.{target}")).astype(int) - (255, 0, 0)).max() <= 3
    assert notes() == ["CMYK becomes RGB, without a profile"]
    run(*BLUR, "--strict", "--strip-all", "a.jpg", f"c.{target}", code=1)


def test_cmyk_and_ycck_are_what_opencv_shows():
    smooth = cv2.GaussianBlur(noise((40, 56, 4), "uint8"), (0, 0), 4)
    data = bytearray(saved(Image.fromarray(smooth, "CMYK"), "JPEG", quality=100))
    at = data.index(b"Adobe") + 11
    for transform in (0, 2):
        data[at] = transform
        shown = cv2.imdecode(np.frombuffer(bytes(data), np.uint8), cv2.IMREAD_COLOR)[:, :, ::-1]
        assert np.abs(decoded(bytes(data)).astype(int) - shown).max() <= 2


def cmyk_profile():
    """A printer's profile whose table has the 16 mixtures of full inks."""
    corners = [
        (255 * (3 - c - m - y) * (1 - k) // 3, 128 + 40 * m - 40 * c, 128 + 60 * y)
        for c, m, y, k in np.ndindex(2, 2, 2, 2)
    ]
    table = b"mft1\0\0\0\0\4\3\2\0" + struct.pack(
        ">9i", *(65536 * v for v in (1, 0, 0, 0, 1, 0, 0, 0, 1))
    )
    table += bytes(range(256)) * 4 + bytes(v for corner in corners for v in corner)
    table += bytes(range(256)) * 3
    table += b"\0" * (-len(table) % 4)
    white = b"XYZ \0\0\0\0" + struct.pack(">3i", 63190, 65536, 54061)
    words = b"text\0\0\0\0none\0\0\0\0"
    tags, body, at = b"", b"", 128 + 4 + 4 * 12
    for name, block in ((b"A2B0", table), (b"wtpt", white), (b"cprt", words), (b"desc", words)):
        tags += name + struct.pack(">II", at + len(body), len(block))
        body += block
    head = b"\0\0\0\0\0\0\0\0\x02\x40\0\0prtrCMYKLab " + struct.pack(">6H", 2026, 1, 1, 0, 0, 0)
    head += b"acsp" + bytes(28) + struct.pack(">3i", 63190, 65536, 54061)
    whole = head.ljust(128, b"\0") + struct.pack(">I", 4) + tags + body
    return struct.pack(">I", len(whole)) + whole[4:]


def test_cmyk_goes_through_its_profile():
    profile = cmyk_profile()
    image = Image.fromarray(noise((20, 31, 4), "uint8"), "CMYK")
    for name, options in (("a.jpg", {"quality": 95}), ("a.tif", {})):
        image.save(name, icc_profile=profile, **options)
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        target = ImageCms.createProfile("sRGB")
        shown = ImageCms.profileToProfile(opened(name), source, target, outputMode="RGB")
        run(*FLIP, "--overwrite", name, "b.png", "--report", "r.json")
        np.testing.assert_array_equal(load(Path("b.png"))[::-1, ::-1], np.asarray(shown))
        assert np.abs(np.asarray(shown).astype(int) - opened(name).convert("RGB")).max() > 20
        assert notes() == ["CMYK becomes RGB, through its profile"]
        assert "icc_profile" not in opened("b.png").info


# Depth and alpha


def test_depths_that_are_cut_on_reading_are_said():
    deep = noise((20, 31, 3), "uint16")
    Path("a.avif").write_bytes(imagecodecs.avif_encode(deep >> 6, bitspersample=10))
    Path("b.jp2").write_bytes(imagecodecs.jpeg2k_encode(deep, level=0, codecformat="jp2"))
    Path("c.ppm").write_bytes(b"P6 # 1\n31 20\n65535\n" + deep.astype(">u2").tobytes())
    Path("d.pgm").write_bytes(b"P5 31 20 65535\n" + deep[:, :, 0].astype(">u2").tobytes())
    for name, bits in (("a.avif", 10), ("b.jp2", 16), ("c.ppm", 16), ("d.pgm", 8)):
        run(*FLIP, "--overwrite", "--format", "png", name, "out", "--report", "r.json")
        assert notes() == ([f"{bits}-bit pixels are read as 8-bit"] if bits > 8 else []), name
    np.testing.assert_array_equal(
        decoded(Path("out/d.png").read_bytes())[::-1, ::-1, 0], deep[:, :, 0]
    )


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
@pytest.mark.parametrize("dtype", ["uint16", "float32"])
def test_depth_and_alpha_fit_the_target_and_that_is_said(channels, dtype):
    pixels = noise((9, 7, channels), dtype)
    Path("a.tif").write_bytes(codecs.encode(pixels, "TIFF"))
    run(*FLIP, "a.tif", "b.tif")
    np.testing.assert_array_equal(decoded(Path("b.tif").read_bytes()), pixels[::-1, ::-1])
    unit = pixels[::-1, ::-1] / np.float64(1 if dtype == "float32" else 65535)
    run(*FLIP, "a.tif", "b.png", "--report", "r.json")
    got = decoded(Path("b.png").read_bytes())
    assert got.dtype == np.uint16
    np.testing.assert_array_equal(got, np.rint(np.clip(unit, 0, 1) * 65535))
    assert len(notes()) == (dtype == "float32")
    run(*FLIP, "a.tif", "b.bmp", "--report", "r.json")
    colour = unit[:, :, :3] if channels > 2 else unit[:, :, :1]
    if channels in (2, 4):
        alpha = np.clip(unit[:, :, -1:], 0, 1)
        colour = colour * alpha + (1 - alpha)
    got = load(Path("b.bmp")).astype(int)
    assert np.abs(got - np.rint(np.clip(colour, 0, 1) * 255)).max() <= (channels in (2, 4))
    losses = [f"BMP can't hold {dtype} pixels: scaled to uint8"]
    if channels in (2, 4):
        losses.append("BMP can't hold an alpha channel: flattened on the background")
    assert notes() == losses
    run(*FLIP, "--strict", "a.tif", "c.bmp", code=1)
    assert not Path("c.bmp").exists()


def test_alpha_is_flattened_on_the_background():
    pixels = noise((20, 31, 4), "uint8")
    pixels[:5, :, 3], pixels[5:9, :, 3] = 0, 255
    Image.fromarray(pixels).save("a.png")
    for words, colour in (
        ((), (255, 255, 255)),
        (("--background", "black"), (0, 0, 0)),
        (("--background", "#ffcc10"), (255, 204, 16)),
    ):
        run(*FLIP, "--overwrite", *words, "a.png", "b.ppm", "--report", "r.json")
        behind = Image.new("RGBA", (31, 20), (*colour, 255))
        wanted = np.asarray(Image.alpha_composite(behind, Image.fromarray(pixels)))[..., :3]
        got = load(Path("b.ppm"))[::-1, ::-1].astype(int)
        assert np.abs(got - wanted).max() <= 1
        assert (got[:5] == colour).all() and (got[5:9] == pixels[5:9, :, :3]).all()
        assert notes() == ["PPM can't hold an alpha channel: flattened on the background"]
    run(*FLIP, "--background", "nocolour", "a.png", "c.ppm", code=2)


def test_sixteen_bit_png_through_a_flip():
    for colour, channels in ((0, 1), (2, 3), (4, 2), (6, 4)):
        pixels = noise((9, 7, channels), "uint16")
        Path("a.png").write_bytes(png(7, 9, 16, colour, rows(pixels.astype(">u2"))))
        run(*FLIP, "--overwrite", "a.png", "b.png")
        data = Path("b.png").read_bytes()
        assert data[24:26] == bytes((16, colour))
        np.testing.assert_array_equal(decoded(data), pixels[::-1, ::-1])


def test_fit_says_what_is_lost():
    deep = ImageSpec(9, 9, 4, "uint16")
    assert codecs.fit(deep, "PNG") == (deep, ())
    assert codecs.fit(deep, "JPEG") == (
        ImageSpec(9, 9, 3, "uint8"),
        (
            "JPEG can't hold uint16 pixels: scaled to uint8",
            "JPEG can't hold an alpha channel: flattened on the background",
        ),
    )
    with pytest.raises(ImageError, match="at most 65500 a side"):
        codecs.fit(ImageSpec(1, 65501, 3, "uint8"), "JPEG")
    with pytest.raises(ParameterError, match="background must be a colour"):
        codecs.parse_colour("no colour")


@pytest.mark.parametrize("compression", ["none", "lzw", "deflate", "packbits", "lzma", "zstd"])
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_tiff_compression_is_kept_at_every_depth(dtype, compression):
    pixels = noise((20, 31, 3), dtype)
    data = imagecodecs.tiff_encode(pixels, photometric="rgb", compression=compression)
    Path("a.tif").write_bytes(data)
    run(*FLIP, "a.tif", "b.tif")
    result = Path("b.tif").read_bytes()
    np.testing.assert_array_equal(imagecodecs.tiff_decode(result), pixels[::-1, ::-1])
    assert codecs.probe(result).coding == codecs.probe(data).coding


# Palettes and bits


def test_palettes_and_bits_come_back_as_such():
    picture = Image.fromarray(noise((20, 30, 3), "uint8")).quantize(16)
    opacities = bytes([0, 80, *[255] * 14])
    picture.save("pal.png")
    picture.save("key.png", transparency=opacities)
    picture.save("pal.tif")
    Image.fromarray(noise((20, 30, 1), "uint8")[:, :, 0]).convert("1").save("bits.png")
    opened("bits.png").save("bits.tif", compression="group4")
    names = ("pal.png", "key.png", "pal.tif", "bits.png", "bits.tif")
    run(*FLIP, *names, "out")
    for name in names:
        before, after = opened(name), opened(Path("out") / name)
        assert after.mode == before.mode
        mode = {"1": "L", "P": "RGBA"}[before.mode]
        wanted = np.asarray(before.convert(mode))[::-1, ::-1]
        np.testing.assert_array_equal(np.asarray(after.convert(mode)), wanted)
    # What no longer fits a palette becomes true colour.
    Image.fromarray(np.arange(256, dtype=np.uint8).reshape(16, 16)).convert("P").save("g.png")
    run("gamma-contrast", "--gamma", "0.5", "pal.png", "p.png")
    assert opened("p.png").mode == "P"
    run("brightness-contrast", "--brightness", "0.5", "bits.png", "b.png")
    assert opened("b.png").mode == "L"


def test_gif_keeps_its_colours():
    colours = noise((255, 1, 3), "uint8")
    image = Image.fromarray(colours[noise((40, 30, 1), "uint8")[:, :, 0] % 255, 0])
    image.save("a.png")
    run(*FLIP, "a.png", "b.gif")
    run(*FLIP, "b.gif", "c.gif")
    np.testing.assert_array_equal(np.asarray(opened("c.gif").convert("RGB")), np.asarray(image))


# Colour


@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
@pytest.mark.parametrize("channels", [3, 4])
def test_to_srgb_converts_at_the_images_own_depth(channels, dtype):
    pixels = noise((20, 31, channels), dtype)
    file = codecs.encode(pixels, "PNG", metadata=codecs.Metadata(icc=SWAPPED))
    Path("a.png").write_bytes(file)
    run(*FLIP, "--to-srgb", "a.png", "b.png")
    data = Path("b.png").read_bytes()
    assert b"iCCP" not in data
    got = decoded(data)[::-1, ::-1]
    assert got.dtype == dtype
    assert np.abs(got[:, :, :3].astype(int) - pixels[:, :, [1, 0, 2]]).max() <= 1
    np.testing.assert_array_equal(got[:, :, 3:], pixels[:, :, 3:])
    run(*FLIP, "a.png", "c.png")
    np.testing.assert_array_equal(decoded(Path("c.png").read_bytes())[::-1, ::-1], pixels)
    assert opened("c.png").info["icc_profile"] == SWAPPED


def test_to_srgb_of_gray_of_srgb_and_of_a_broken_profile():
    gray = noise((9, 7, 1), "uint8")
    Path("g.png").write_bytes(codecs.encode(gray, "PNG", metadata=codecs.Metadata(icc=LINEAR)))
    run(*FLIP, "--to-srgb", "g.png", "h.png")
    unit = gray[::-1, ::-1] / 255
    curve = np.where(unit <= 0.0031308, 12.92 * unit, 1.055 * unit ** (1 / 2.4) - 0.055)
    assert np.abs(load(Path("h.png")) - curve * 255).max() <= 1
    pixels = noise((9, 7, 3), "uint8")
    broken = SRGB[:200] + b"\xff" * 100
    for profile in (SRGB, broken, None):
        options = {} if profile is None else {"icc_profile": profile}
        Image.fromarray(pixels).save("a.png", **options)
        run(*FLIP, "--overwrite", "--to-srgb", "a.png", "b.png", "--report", "r.json")
        np.testing.assert_array_equal(load(Path("b.png")), pixels[::-1, ::-1])
        assert [note for note in notes() if "can't be used" in note] == (
            ["the ICC profile can't be used, so nothing is converted to sRGB"]
            if profile is broken
            else []
        )


def test_to_srgb_says_that_chunks_are_not_converted():
    pixels, extra = noise((9, 7, 3), "uint8"), chunk(b"gAMA", struct.pack(">I", 100000))
    Path("a.png").write_bytes(png(7, 9, 8, 2, rows(pixels), extra))
    run(*FLIP, "--to-srgb", "a.png", "b.png", "--report", "r.json")
    assert notes() == ["only ICC profiles are converted to sRGB, not gamma or cICP chunks"]
    assert extra in Path("b.png").read_bytes()
