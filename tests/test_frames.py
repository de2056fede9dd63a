"""Files of several pictures: every frame and page goes through the chain, none is lost silently."""

import hashlib
import io
import struct
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from conftest import noise
from PIL import Image, ImageSequence
from test_cli import FLIP, load, peak_mib
from test_metadata import exif, opened, run, saved

from cvcli import codecs

SUFFIX = {"GIF": ".gif", "PNG": ".png", "WEBP": ".webp", "AVIF": ".avif", "TIFF": ".tif"}
EXACT = {"GIF": {}, "PNG": {}, "WEBP": {"lossless": True, "exact": True}}
DURATIONS = [40, 100, 250, 70]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def drawing(seed, size=(26, 18), alpha=False):
    """A picture of few colours that differs from its neighbours in a part."""
    pixels = np.zeros((size[1], size[0], 4 if alpha else 3), np.uint8)
    pixels[:, :] = (200, 30, 10, 255)[: pixels.shape[2]]
    block = noise((6, 7, 3), "uint8", seed) & 0xE0
    pixels[seed : seed + 6, 2 * seed : 2 * seed + 7, :3] = block
    if alpha:
        pixels[seed : seed + 3, 10:20, 3] = 0
    return Image.fromarray(pixels)


def drawings(alpha=False):
    return [drawing(seed, alpha=alpha) for seed in range(4)]


def animated(format, images=None, **options):
    images = images or drawings()
    extra = {"save_all": True, "append_images": images[1:], "duration": DURATIONS[: len(images)]}
    loop = {} if format == "AVIF" else {"loop": 3}
    return saved(images[0], format, **extra | loop | EXACT.get(format, {}) | options)


def frames(path):
    """Composed frames as Pillow shows them, with their durations."""
    image = opened(path)
    shown, times = [], []
    for frame in ImageSequence.Iterator(image):
        frame.load()
        times.append(frame.info.get("duration"))
        shown.append(np.asarray(frame.convert("RGBA")))
    return shown, times


def visible(pixels):
    """Clear pixels have no colour."""
    return np.where(pixels[:, :, 3:] == 0, 0, pixels)


def assert_turned(got, wanted):
    assert len(got) == len(wanted)
    for one, other in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(visible(one), visible(other)[::-1, ::-1])


@pytest.mark.parametrize("alpha", [False, True])
@pytest.mark.parametrize("target", EXACT)
@pytest.mark.parametrize("format", EXACT)
def test_every_frame_comes_through(format, target, alpha):
    name, result = f"a{SUFFIX[format]}", f"b{SUFFIX[target]}"
    Path(name).write_bytes(animated(format, drawings(alpha)))
    run(*FLIP, "--quality", 100, name, result)
    wanted, times = frames(name)
    got, kept = frames(result)
    assert_turned(got, wanted)
    assert kept == times == DURATIONS
    plays = codecs.probe(Path(name).read_bytes()).plays
    assert codecs.probe(Path(result).read_bytes()).plays == plays
    assert opened(name).info["loop"] == 3


@pytest.mark.parametrize("disposal", [1, 2, 3])
def test_partial_frames_are_composed(disposal):
    first = drawing(0, alpha=True)
    data = animated("GIF", drawings(alpha=True), disposal=disposal, optimize=True)
    Path("a.gif").write_bytes(data)
    run(*FLIP, "a.gif", "b.gif")
    assert_turned(frames("b.gif")[0], frames("a.gif")[0])
    assert first.size == opened("b.gif").size


def test_a_gif_that_plays_once_and_one_that_never_ends():
    for loop, plays in ((None, 1), (0, 0), (1, 2)):
        options = {} if loop is None else {"loop": loop}
        extra = {"save_all": True, "append_images": drawings()[1:], "duration": 50}
        Path("a.gif").write_bytes(saved(drawing(0), "GIF", **extra, **options))
        run(*FLIP, "--overwrite", "a.gif", "b.gif")
        run(*FLIP, "--overwrite", "a.gif", "b.png")
        assert opened("b.gif").info.get("loop") == loop
        assert opened("b.png").info["loop"] == plays


def test_avif_frames_are_close():
    smooth = [image.resize((80, 60), Image.Resampling.BICUBIC) for image in drawings()]
    Path("a.avif").write_bytes(animated("AVIF", smooth, quality=95))
    run(*FLIP, "a.avif", "b.avif", "--quality", 100)
    wanted, times = frames("a.avif")
    got, kept = frames("b.avif")
    assert kept == times and len(got) == 4
    for one, other in zip(got, wanted, strict=True):
        assert np.abs(one.astype(int) - other[::-1, ::-1]).mean() < 2


def test_sixteen_bit_animation_stays_deep():
    pixels = noise((3, 11, 9, 3), "uint16")
    Path("a.png").write_bytes(imagecodecs.apng_encode(pixels, delay=90))
    run(*FLIP, "a.png", "b.png")
    data = Path("b.png").read_bytes()
    np.testing.assert_array_equal(imagecodecs.apng_decode(data), pixels[:, ::-1, ::-1])
    np.testing.assert_array_equal(imagecodecs.png_decode(data), pixels[0, ::-1, ::-1])
    assert frames("b.png")[1] == [90] * 3


def test_metadata_of_an_animation_and_its_turn():
    for format in ("PNG", "WEBP"):
        name = f"a{SUFFIX[format]}"
        Path(name).write_bytes(animated(format, exif=b"Exif\0\0" + exif()))
        run(*FLIP, name, f"out/{name}")
        image = opened(f"out/{name}")
        assert (image.size, image.n_frames) == ((18, 26), 4)
        assert image.getexif()[0x010F] == "Some Make" and image.getexif()[0x0112] == 1


def pages(**options):
    """Pages of several sizes and kinds, the second lying on its side."""
    colour = Image.fromarray(noise((20, 31, 3), "uint8"))
    deep = Image.fromarray(noise((12, 9, 1), "uint16")[:, :, 0])
    bits = Image.fromarray(noise((16, 24, 1), "uint8")[:, :, 0]).convert("1")
    whole = [colour, deep, bits, drawing(1).quantize(16)]
    return whole, saved(colour, "TIFF", save_all=True, append_images=whole[1:], **options)


@pytest.mark.parametrize("compression", ["tiff_lzw", "tiff_adobe_deflate", "packbits", "raw"])
def test_every_page_comes_through_with_its_compression(compression):
    whole, data = pages(compression=compression)
    Path("a.tif").write_bytes(data)
    run(*FLIP, "a.tif", "b.tif")
    with Image.open("b.tif") as image:
        assert image.n_frames == 4
        for number, page in enumerate(whole):
            image.seek(number)
            if page.mode != "P":
                image.palette = None  # before Pillow 13 that of another page stays
            assert image.info["compression"] == compression and image.mode == page.mode
            wanted = page.convert("RGB") if page.mode == "P" else page
            got = image.convert("RGB") if page.mode == "P" else image
            np.testing.assert_array_equal(np.asarray(got), np.asarray(wanted)[::-1, ::-1])


def test_pages_have_their_own_orientation_and_tags():
    tifffile = pytest.importorskip("tifffile")
    whole = [noise((20, 31, 3), "uint8", seed) for seed in range(3)]
    with tifffile.TiffWriter("a.tif") as file:
        for number, pixels in enumerate(whole):
            tag = (274, "H", 1, (1, 6, 3)[number], True)
            file.write(pixels, description=f"page {number}", extratags=[tag], metadata=None)
    run(*FLIP, "a.tif", "b.tif")
    with tifffile.TiffFile("b.tif") as file:
        assert [page.description for page in file.pages] == [f"page {n}" for n in range(3)]
        shown = [whole[0], np.rot90(whole[1], -1), whole[2][::-1, ::-1]]
        for page, wanted in zip(file.pages, shown, strict=True):
            np.testing.assert_array_equal(page.asarray(), wanted[::-1, ::-1])


def test_an_animation_becomes_pages():
    Path("a.gif").write_bytes(animated("GIF"))
    run(*FLIP, "a.gif", "b.tif")
    assert_turned(frames("b.tif")[0], frames("a.gif")[0])


def test_one_frame_where_one_is_asked_for(capfd):
    Path("a.gif").write_bytes(animated("GIF"))
    wanted = frames("a.gif")[0]
    for number in range(4):
        run(*FLIP, "--frame", number, "a.gif", f"{number}.png")
        got, _ = frames(f"{number}.png")
        assert_turned(got, wanted[number : number + 1])
    run(*FLIP, "--strict", "--frame", 2, "a.gif", "strict.bmp")
    run(*FLIP, "--frame", 4, "a.gif", "none.png", code=1)
    said = capfd.readouterr().err
    assert "there is no frame 4: the file has 4 pictures, counted from 0" in said


def test_a_broken_frame_fails_the_file_and_only_that():
    data = animated("WEBP", [drawing(n % 4, (60, 40)) for n in range(12)][:4])
    Path("in").mkdir()
    Path("in/a.webp").write_bytes(data)
    at = [i for i in range(len(data)) if data[i : i + 4] == b"VP8L"][2]
    Path("in/b.webp").write_bytes(data[: at + 12] + b"\xff" * 40 + data[at + 52 :])
    gif = animated("GIF")
    Path("in/c.gif").write_bytes(gif[: len(gif) * 2 // 3])
    run(*FLIP, "--batch-size", 1, "in", "out", code=1)
    assert [path.name for path in Path("out").iterdir()] == ["a.webp"]


def test_pixels_of_all_frames_count_as_those_of_one():
    Path("a.gif").write_bytes(animated("GIF"))
    run(*FLIP, "--max-pixels", 18 * 26 * 4 - 1, "a.gif", "b.gif", code=1)
    run(*FLIP, "--max-pixels", 18 * 26 * 4, "a.gif", "b.gif")
    run(*FLIP, "--max-pixels", 18 * 26, "--frame", 1, "a.gif", "c.gif")


def test_every_schedule_gives_the_same_frames():
    Path("in").mkdir()
    for number in range(6):
        format = list(EXACT)[number % 3]
        images = drawings(alpha=number % 2 == 0)
        Path("in", f"{number}{SUFFIX[format]}").write_bytes(animated(format, images))
    Path("in/6.tif").write_bytes(pages()[1])
    seen = set()
    for number, words in enumerate((["-j", 1], ["-j", 3, "--batch-size", 1], ["-j", 8])):
        run(*FLIP, *words, "in", f"out{number}")
        whole = [path.read_bytes() for path in sorted(Path(f"out{number}").iterdir())]
        assert len(whole) == 7
        seen.add(hashlib.sha256(b"".join(whole)).hexdigest())
    assert len(seen) == 1


def test_a_hidden_default_picture_is_not_a_frame(capfd):
    default, *rest = drawings()
    data = saved(default, "PNG", save_all=True, append_images=rest, default_image=True, duration=50)
    assert struct.unpack(">I", data[data.index(b"acTL") + 4 :][:4]) == (3,)
    Path("a.png").write_bytes(data)
    run(*FLIP, "a.png", "b.png")
    wanted = [np.asarray(image.convert("RGBA")) for image in rest]
    assert_turned(frames("b.png")[0], wanted)
    told = "the still image that is no part of the animation is dropped"
    assert f"note: a.png: {told}" in capfd.readouterr().err
    run(*FLIP, "a.png", "c.png", "--strict", code=1)
    assert told in capfd.readouterr().err


def test_the_pictures_of_a_multi_picture_jpeg():
    whole = [drawing(seed, (48, 32)) for seed in range(3)]
    data = saved(whole[0], "MPO", save_all=True, append_images=whole[1:], quality=95)
    Path("a.jpg").write_bytes(data)
    run(*FLIP, "--frame", 2, "--format", "png", "a.jpg", "two.png")
    run(*FLIP, "a.jpg", "all.tif")
    image = Image.open(io.BytesIO(data))
    for number in range(3):
        image.seek(number)
        wanted = np.asarray(image)[::-1, ::-1]
        np.testing.assert_array_equal(frames("all.tif")[0][number][:, :, :3], wanted)
    np.testing.assert_array_equal(load(Path("two.png")), wanted)


def test_memory_does_not_grow_with_the_number_of_animations():
    images = [Image.fromarray(noise((300, 300, 3), "uint8", n) & 0xC0) for n in range(4)]
    data = animated("GIF", images, duration=50)
    peaks = []
    for count in (12, 48):
        folder = Path(str(count))
        folder.mkdir()
        for number in range(count):
            (folder / f"{number:02}.gif").write_bytes(data)
        peak, code = peak_mib(*FLIP, "-q", "-j", "2", folder, f"out{count}")
        assert code == 0
        peaks.append(peak)
    # What the larger folder has more in pixels is 39 MB before and as many after.
    assert peaks[1] < peaks[0] + 30


def two_pages(path):
    """A small gray page and a larger one in colour."""
    small, large = Image.new("L", (10, 8)), Image.fromarray(noise((70, 80, 3), "uint8"))
    small.save(path, save_all=True, append_images=[large])
    return np.asarray(large)


@pytest.mark.parametrize("step", ["crop --width 50 --height 40", "cvtcolor --code rgb2bgr"])
def test_a_chain_need_only_suit_the_page_that_is_asked_for(here, step):
    two_pages(here / "a.tif")
    run("run", step, "a.tif", "out.tif", "--frame", "1")
    run("run", step, "a.tif", "first.tif", "--frame", "0", code=2)


def test_a_name_has_the_size_of_the_page_that_is_asked_for(here):
    large = two_pages(here / "a.tif")
    name = ["--name", "{stem}-{width}x{height}.{ext}"]
    run("flip", "--axis", "0", "a.tif", "out", "--frame", "1", *name)
    assert np.array_equal(load(here / "out" / "a-80x70.tif"), large[::-1])
    run("flip", "--axis", "0", "a.tif", "out", *name)
    assert (here / "out" / "a-10x8.tif").exists()


def test_a_page_that_fails_is_told_by_the_number_that_frame_takes(here, capfd):
    large = Image.new("RGB", (80, 70))
    large.save(here / "a.tif", save_all=True, append_images=[Image.new("L", (10, 8))])
    run("crop", "--width", "50", "--height", "40", "a.tif", "out.tif", code=1)
    assert "a.tif: frame 1: crop: the rectangle 50x40 must be" in capfd.readouterr().err
    run("flip", "--axis", "0", "a.tif", "out.tif")
    changed = [large, Image.new("L", (10, 8), 9)]
    changed[0].save(here / "out.tif", save_all=True, append_images=changed[1:])
    run("flip", "--axis", "0", "a.tif", "out.tif", "--check", code=1)
    assert "out.tif: frame 1 differs" in capfd.readouterr().err
