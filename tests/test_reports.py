"""What people have reported of other tools, each as a small test with the right answer.

Only those that no other test stands for; the numbers are the reports' in the trackers named.
"""

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import noise
from PIL import Image, ImageOps
from test_cli import FLIP, files_in, load
from test_metadata import opened, run, saved
from within import cvcli


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def image(width, height, channels=3, seed=0):
    pixels = noise((height, width, channels), "uint8", seed)
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)


def turned(value):
    block = Image.Exif()
    block[0x0112] = value
    return block


@pytest.mark.parametrize("format", ["jpg", "png", "webp", "tif"])
def test_geometry_is_that_of_the_upright_image(format):
    """ComfyUI-KJNodes 481, sharp 903: the box was worked out before the image was turned."""
    kind = {"jpg": "JPEG", "tif": "TIFF"}.get(format, format.upper())
    exact = {"lossless": True} if format == "webp" else {}
    for value in range(1, 9):
        Path(f"in{value}.{format}").write_bytes(
            saved(image(40, 20), kind, exif=turned(value), **exact)
        )
        upright = ImageOps.exif_transpose(opened(f"in{value}.{format}")).convert("RGB")
        run("resize", "10x", f"in{value}.{format}", f"out{value}.png", "--exact")
        got = opened(f"out{value}.png")
        assert got.size == ((10, 20) if value > 4 else (10, 5))
        assert got.getexif().get(0x0112, 1) == 1
        want = upright.resize(got.size, Image.Resampling.BICUBIC)
        run(
            "resize",
            "10x",
            "--filter",
            "bicubic",
            f"in{value}.{format}",
            f"b{value}.png",
            "--exact",
        )
        np.testing.assert_array_equal(load(Path(f"b{value}.png")), np.asarray(want))


def test_gray_of_sixteen_bits_is_resized_by_every_filter():
    """Pillow 8333 and 1099: not supported, or white all over, from one version to the next."""
    pixels = np.linspace(0, 65535, 31 * 20).reshape(20, 31).astype(np.uint16)
    for suffix in ("png", "tif"):
        Image.fromarray(pixels).save(f"a.{suffix}")
        for filter in ("nearest", "bilinear", "lanczos", "box"):
            run("resize", "15x10", "--filter", filter, f"a.{suffix}", f"{filter}.{suffix}", "-q")
            got = load(Path(f"{filter}.{suffix}"))
            assert got.dtype == np.uint16 and got.shape[:2] == (10, 15)
            want = Image.fromarray(pixels.astype(np.float32)).resize(
                (15, 10), Image.Resampling[filter.upper()]
            )
            assert np.abs(got[:, :, 0] - np.asarray(want)).max() < 2, filter
    run(*FLIP, "a.png", "a.jpg", "--quality", 100)
    shown = load(Path("a.jpg"))[::-1, ::-1]
    assert np.abs(shown[:, :, 0] - pixels / 257).max() < 3


@pytest.mark.parametrize(
    "words", [["resize", "9x9"], ["rotate", "--angle", "20"], ["resize", "90x"]]
)
def test_what_is_transparent_leaves_no_halo(words):
    """sharp 605, PistonDevelopers 23: red that nobody saw bled into white."""
    pixels = np.full((64, 64, 4), 255, np.uint8)
    pixels[:, :32] = 255, 0, 0, 0
    Image.fromarray(pixels).save("a.png")
    run(*words, "a.png", "b.png")
    run(*words, "a.png", "c.webp", "--quality", 100)
    for name in ("b.png", "c.webp"):
        got = load(Path(name))
        assert (got[got[:, :, 3] > 0][:, :3] == 255).all()


@pytest.mark.parametrize("format", ["PNG", "GIF"])
def test_a_transparent_place_in_a_palette_is_resized_as_alpha(format):
    """Pillow 2702, libgd 638: the transparency was lost, or the wrong colour became clear."""
    places = np.zeros((40, 40), np.uint8)
    places[10:30, 10:30] = 1
    drawn = Image.fromarray(places)
    drawn.putpalette([255, 0, 0, 0, 0, 255])
    Path(f"a.{format.lower()}").write_bytes(saved(drawn, format, transparency=0))
    run("resize", "20x20", "--filter", "box", f"a.{format.lower()}", "b.png")
    got = np.asarray(opened("b.png").convert("RGBA"))
    assert (got[:, :, 3] == 255).sum() == 100 and (got[:, :, 3] == 0).sum() == 300
    assert (got[got[:, :, 3] == 255][:, :3] == (0, 0, 255)).all()


def test_a_checkerboard_keeps_its_mean():
    """imgp 60; in the values as they are stored, as every tool does unless it is told otherwise."""
    board = np.indices((64, 64)).sum(axis=0) % 2 * 255
    Image.fromarray(board.astype(np.uint8)).save("a.png")
    for filter in ("box", "bilinear", "lanczos"):
        run("resize", "50%", "--filter", filter, "a.png", f"{filter}.png")
        inner = load(Path(f"{filter}.png"))[4:-4, 4:-4]
        assert np.abs(inner.astype(int) - 128).max() <= 1


def test_no_side_becomes_zero():
    """image-rs 1109, libvips 2416."""
    for size, word, want in (
        ((1000, 1), "5%", (50, 1)),
        ((858, 1), "80x", (80, 1)),
        ((3, 3), "1%", (1, 1)),
        ((1, 1000), "x80", (1, 80)),
    ):
        image(*size).save("a.png")
        run("resize", word, "a.png", "b.png", "--overwrite")
        assert opened("b.png").size == want


def test_three_frames_are_three_frames():
    """sharp 1823, jekyll-responsive-image 113."""
    colours = [Image.new("RGB", (8, 8), name) for name in ("red", "lime", "blue")]
    Path("a.gif").write_bytes(saved(colours[0], "GIF", save_all=True, append_images=colours[1:]))
    for suffix in ("gif", "webp", "png", "tif"):
        run(*FLIP, "a.gif", f"b.{suffix}")
        assert opened(f"b.{suffix}").n_frames == 3
    run(*FLIP, "a.gif", "b.jpg")
    assert files_in(Path()) == sorted(
        [
            "a.gif",
            *(f"b.{suffix}" for suffix in ("gif", "webp", "png", "tif")),
            *(f"b-{number:03}.jpg" for number in range(3)),
        ]
    )


def test_a_name_without_a_suffix_can_be_written(here):
    """libvips 1348, ImageGoNord-cli 21, gphotos-uploader 14."""
    Path("in").mkdir()
    for name in ("x.JPG", "noext"):
        Path("in", name).write_bytes(saved(image(9, 8), "JPEG" if "." in name else "PNG"))
    run(*FLIP, "in", "out")
    assert files_in(here / "out") == ["noext", "x.JPG"]
    assert (opened("out/noext").format, opened("out/x.JPG").format) == ("PNG", "JPEG")
    run(*FLIP, "in/noext", "two", "--name", "{stem}")
    assert files_in(here / "two") == ["noext"]


def test_nothing_matched_is_no_success(capfd):
    """ImageMagick 6744, oiiotool 4623: a script went on and deleted the originals."""
    Path("empty").mkdir()
    for words in (["nope*.jpg"], ["empty"], ["empty", "nope*.jpg"]):
        run(*FLIP, *words, "out", code=66)
    run(*FLIP, "nope.jpg", "out", code=66)
    assert not Path("out").exists()


def test_a_truncated_tiff_in_place_is_left_alone(here):
    """ImageMagick 5952: eight bytes took its name, and it was called f~."""
    data = saved(image(90, 80), "TIFF")
    Path("f.tif").write_bytes(data[: len(data) // 2])
    before = os.stat("f.tif")  # noqa: PTH116
    for words in ([], ["--backup"], ["--backup=.old"]):
        run(*FLIP, "--in-place", *words, "f.tif", code=1)
        after = os.stat("f.tif")  # noqa: PTH116
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
        assert files_in(here) == ["f.tif"]


def test_a_limit_of_pixels_is_set_for_a_run(capfd):
    """szurubooru 503, labelme 519, Pillow 5218."""
    image(100, 100, 1).save("a.png")
    run(*FLIP, "--max-pixels", 9999, "a.png", "b.png", code=1)
    assert "100x100 is 10000 pixels, more than the limit of 9999" in capfd.readouterr().err
    run(*FLIP, "--max-pixels", 10_000, "a.png", "b.png")


def test_two_suffixes_of_one_stem_collide_before_anything_is_written(capfd):
    """webp-express 602, timber 3286, waifu2x 27: two files became one."""
    Path("in").mkdir()
    Image.new("RGB", (8, 8), "red").save("in/a.png")
    Image.new("RGB", (8, 8), "blue").save("in/a.bmp")
    run(*FLIP, "in", "out", "--format", "jpg", code=2)
    said = capfd.readouterr().err
    assert "out/a.jpg: two inputs would write it" in said and "in/a.bmp" in said
    assert not Path("out").exists()
    run(*FLIP, "in", "out", "--name", "{name}.jpg")
    assert sorted(os.listdir("out")) == ["a.bmp.jpg", "a.png.jpg"]  # noqa: PTH208


def test_a_tree_is_mirrored_and_a_folder_among_files_is_no_trouble(here):
    """squoosh 967 and 916."""
    for name in ("in/x/a.png", "in/y/a.png", "in/b.png"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        image(8, 8).save(name)
    run(*FLIP, "-r", "in", "out")
    assert files_in(here / "out") == ["b.png", "x/a.png", "y/a.png"]
    run(*FLIP, *sorted(map(str, Path("in").iterdir())), "flat", code=2)  # x/a.png and y/a.png
    run(*FLIP, "in/b.png", "in/x", "two")
    run(*FLIP, "-r", "in", "in/done")
    run(*FLIP, "-r", "in", "in/done", "--overwrite")
    assert files_in(here / "in" / "done") == ["b.png", "x/a.png", "y/a.png"]


def test_hidden_files_and_those_of_other_systems(here):
    """immich CLI 73."""
    names = [".h/a.png", ".b.png", "._a.png", "@eaDir/a.png", "a.png"]
    for name in names:
        Path("in", name).parent.mkdir(parents=True, exist_ok=True)
        image(8, 8).save(Path("in", name))
    run(*FLIP, "-r", "in", "out", "--exclude", "@eaDir")
    assert files_in(here / "out") == ["a.png"]
    run(*FLIP, "-r", "in", "all", "--hidden")
    assert files_in(here / "all") == sorted(names)


def test_three_of_ten_are_not_done_again(here):
    """waifu2x 64, mt 45, ImageOptim-CLI 45."""
    Path("in").mkdir()
    for number in range(10):
        image(30, 20, seed=number).save(f"in/{number}.png")
    run(*FLIP, *(f"in/{number}.png" for number in range(3)), "out")
    (here / "out" / f".cvcli-{2**22 + 5}-0123456789abcdef01234567.tmp").write_bytes(b"half")
    before = {name: os.stat(here / "out" / name).st_ino for name in ("0.png", "1.png", "2.png")}  # noqa: PTH116
    done = cvcli(*FLIP, "--skip-existing", "in", "out")
    assert "7 images" in done.stderr and "3 skipped" in done.stderr
    for name, number in before.items():
        assert os.stat(here / "out" / name).st_ino == number  # noqa: PTH116
    for number in range(10):
        want = np.asarray(image(30, 20, seed=number))[::-1, ::-1]
        np.testing.assert_array_equal(load(here / "out" / f"{number}.png"), want)


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_dry_run_into_head_is_quiet(unbuffered):
    """B2 CLI 1071, hdfs-native 277: a traceback, or the exit code of a failure, or of success."""
    Path("in").mkdir()
    for number in range(500):
        Path(f"in/{number:0200}.png").write_bytes(b"x")
    words = [sys.executable, "-m", "cvcli", *FLIP, "--dry-run", "in", "out"]
    environment = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(), said) == (141, b"")


def test_palette_to_buffer_and_back():
    """What is read from a pipe is what is read from a file."""
    data = saved(image(20, 10).quantize(9), "PNG", transparency=2)
    Path("a.png").write_bytes(data)
    run(*FLIP, "a.png", "b.png")
    done = cvcli(*FLIP, "-", "-", data=data)
    assert done.stdout == Path("b.png").read_bytes()
    assert Image.open(io.BytesIO(done.stdout)).mode in ("P", "RGBA")


def test_a_rerun_gives_the_same_bytes_whatever_the_time_and_the_threads(here):
    """No clock in a file: a second run is a second proof."""
    (here / "in").mkdir()
    for format in ("PNG", "JPEG", "TIFF", "WEBP", "GIF", "AVIF", "BMP", "JPEG2000", "TGA", "QOI"):
        for number in range(3):
            name = f"in/{format}{number}.{'jp2' if format == 'JPEG2000' else format.lower()}"
            Path(name).write_bytes(saved(image(60, 40, seed=number), format))
    Path("in/x.gif").write_bytes(
        saved(image(9, 9), "GIF", save_all=True, append_images=[image(9, 9, seed=1)])
    )
    run(*FLIP, "in", "one", "--threads", 1)
    second = int(time.time())
    while int(time.time()) == second:
        time.sleep(0.02)
    run(*FLIP, "in", "two", "--threads", 5)
    assert len(files_in(here / "one")) == 31
    for name in files_in(here / "one"):
        assert Path("one", name).read_bytes() == Path("two", name).read_bytes(), name
