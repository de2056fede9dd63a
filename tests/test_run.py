"""Whole runs: the right pixels through files, the same bytes whatever the schedule, and endings."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import ROOT, noise
from PIL import Image, ImageOps
from test_cli import FLIP, MODULE, contents, cvcli, environment, files_in, load, peak_mib, save
from test_cli_files import chunk, short_png

import cvcli as api
from cvcli.cli.app import run_app
from cvcli.core.apply import apply


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*words):
    assert run_app([str(word) for word in words]) == 0


def turned(pixels):
    return pixels[::-1, ::-1]


def deep(path, pixels):
    """Write 16 bits a sample, by OpenCV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    order = {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[pixels.shape[2]]
    assert cv2.imwrite(str(path), np.ascontiguousarray(pixels[:, :, order]))
    return path


def load_deep(path):
    pixels = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)
    pixels = pixels.reshape(*pixels.shape[:2], -1)
    return pixels[:, :, {1: [0], 3: [2, 1, 0], 4: [2, 1, 0, 3]}[pixels.shape[2]]]


def inverted(pixels):
    """White minus each sample, alpha kept."""
    result = np.iinfo(pixels.dtype).max - pixels
    if pixels.shape[2] in (2, 4):
        result[:, :, -1] = pixels[:, :, -1]
    return result


EXACT = {
    "flip --axis 0": lambda p: p[::-1],
    "flip --axis 1": lambda p: p[:, ::-1],
    "flip --axis -1": turned,
    "rotate --angle 90": np.rot90,
    "rotate --angle 180": turned,
    "rotate --angle -90": lambda p: np.rot90(p, -1),
    "crop --width 7 --height 5 --x 3 --y 2": lambda p: p[2:7, 3:10],
    "crop --width 7 --height 5 --gravity southeast": lambda p: p[-5:, -7:],
    "pad --top 1 --left 2 --border replicate": lambda p: np.pad(p, PADS, "edge"),
    "pad --top 1 --left 2 --border reflect": lambda p: np.pad(p, PADS, "symmetric"),
    "pad --top 1 --left 2 --border wrap": lambda p: np.pad(p, PADS, "wrap"),
    "invert": inverted,
}
PADS = ((1, 0), (2, 0), (0, 0))


@pytest.mark.parametrize("text", EXACT)
def test_operators_give_the_right_pixels_through_files(here, text):
    for channels in (1, 2, 3, 4):
        save(here / "in" / f"{channels}.png", noise((23, 31, channels), "uint8"))
    for channels in (1, 3, 4):
        deep(here / "in" / f"{channels}deep.png", noise((23, 31, channels), "uint16"))
    run(*text.split(), "in", "out")
    for name in files_in(here / "in"):
        read = load_deep if "deep" in name else load
        got, wanted = read(here / "out" / name), EXACT[text](read(here / "in" / name))
        assert got.dtype == wanted.dtype, name
        np.testing.assert_array_equal(got, wanted, name)


def test_gray_with_alpha_stays_16_bits(here):
    pixels = noise((9, 7, 2), "uint16")
    raw = b"".join(b"\0" + row.tobytes() for row in pixels.astype(">u2"))
    head = short_png(7, 9, 16, 4)[:33]
    Path("a.png").write_bytes(head + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))
    run("invert", "a.png", "b.png")
    assert Path("b.png").read_bytes()[24:26] == b"\x10\x04"
    got = cv2.imread("b.png", cv2.IMREAD_UNCHANGED)  # as four channels
    assert got.dtype == np.uint16
    np.testing.assert_array_equal(got[:, :, [0, 3]], inverted(pixels))


def test_palettes_become_what_they_show(here):
    picture = Image.fromarray(noise((20, 30, 3), "uint8")).quantize(16)
    picture.save("pal.png")
    picture.save("key.png", transparency=3)
    Image.fromarray(noise((20, 30, 1), "uint8")[:, :, 0]).convert("1").save("bits.png")
    run(*FLIP, "pal.png", "key.png", "bits.png", "out")
    for name, mode in (("pal.png", "RGB"), ("key.png", "RGBA"), ("bits.png", "L")):
        with Image.open(name) as image:
            wanted = np.asarray(image.convert(mode)).reshape(20, 30, -1)
        with Image.open(here / "out" / name) as image:
            got = np.asarray(image.convert(mode)).reshape(20, 30, -1)
        np.testing.assert_array_equal(got, turned(wanted))


@pytest.mark.parametrize("quality", [None, 40, 95])
@pytest.mark.parametrize("channels", [1, 3])
def test_jpeg_is_what_pillow_writes_of_the_same_pixels(here, channels, quality):
    smooth = cv2.GaussianBlur(noise((61, 83, channels), "uint8"), (0, 0), 3).reshape(61, 83, -1)
    save(here / "a.png", smooth)
    run(*FLIP, "a.png", "b.jpg", *(["--quality", quality] if quality else []))
    save(here / "c.jpg", turned(smooth), quality=quality or 90)
    np.testing.assert_array_equal(load(here / "b.jpg"), load(here / "c.jpg"))


@pytest.mark.parametrize("suffix", ["jpg", "png", "tif", "webp"])
def test_orientation_comes_before_the_first_operator(here, suffix):
    for value in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = value
        name = here / "in" / f"{value}.{suffix}"
        save(name, noise((20, 31, 3), "uint8"), exif=exif)
    run("crop", "--width", 15, "--height", 18, "--format", "png", "in", "out")
    for value in range(1, 9):
        with Image.open(here / "in" / f"{value}.{suffix}") as image:
            assert image.getexif()[0x112] == value
            wanted = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))[:18, :15]
        np.testing.assert_array_equal(load(here / "out" / f"{value}.png"), wanted)
        with Image.open(here / "out" / f"{value}.png") as image:
            assert image.getexif().get(0x112, 1) == 1


def mixed(folder):
    """Images of many sizes, kinds and formats, in an order that mixes them."""
    for number in range(24):
        kind = number % 4 + 1
        save(folder / f"{number:02}.png", noise((12 + 5 * number, 90 - number, kind), "uint8"))
    for number in range(6):
        kind = (1, 3, 4)[number % 3]
        deep(folder / f"{3 * number:02}deep.png", noise((40, 30 + number, kind), "uint16"))
    save(folder / "24.jpg", noise((64, 48, 3), "uint8"))
    save(folder / "25.webp", noise((33, 48, 4), "uint8"), lossless=True)
    Image.fromarray(noise((40, 50, 1), "float32")[:, :, 0]).save(folder / "26.tif")
    return folder


CHAIN = "flip --axis 1 | crop --width 25 --height 10 --gravity center | pad --top 3 | rotate "
CHAIN += "--angle 90 | brightness-contrast --brightness 1.2 --contrast 1.1 | invert"


def test_a_chain_equals_its_commands_one_after_the_other(here):
    mixed(here / "step0")
    Path("step0/24.jpg").unlink(), Path("step0/26.tif").unlink()  # PNG would not keep the floats
    steps = CHAIN.split(" | ")
    for number, step in enumerate(steps):
        run(*step.split(), "--format", "png", f"step{number}", f"step{number + 1}")
    Path("chain.txt").write_text("# a step a line\n" + " |\n".join(steps) + " # done\n")
    run("run", CHAIN, "--format", "png", "step0", "whole")
    run("run", "@chain.txt", "--format", "png", "step0", "lines")
    wanted = contents(here / f"step{len(steps)}")
    assert len(wanted) == 31
    assert contents(here / "whole") == wanted and contents(here / "lines") == wanted


def test_a_run_gives_what_the_library_gives(here):
    mixed(here / "in")
    run("run", CHAIN, "in", "out")
    for name in [name for name in files_in(here / "in") if name.endswith(".png")]:
        read = load_deep if "deep" in name else load
        image = api.as_tensor(np.ascontiguousarray(read(here / "in" / name)))
        wanted = apply(api.parse_chain(CHAIN), image).numpy()
        np.testing.assert_array_equal(read(here / "out" / name), wanted, name)
    assert len(files_in(here / "out")) == 33


SCHEDULES = [
    ["--jobs", "1"],
    ["--jobs", "2", "--batch-size", "1"],
    ["--jobs", "3", "--batch-size", "2", "--streams", "1"],
    ["--jobs", "8", "--batch-size", "7", "--streams", "4"],
    ["--jobs", "5", "--streams", "3"],
    ["--jobs", "1", "--batch-size", "1", "--streams", "4"],
    ["--jobs", "8", "--batch-size", "1000"],
]


def test_every_schedule_gives_the_same_bytes_in_the_same_order(here):
    mixed(here / "in")
    Path("in/13bad.png").write_bytes(short_png(40, 40, colour=2))
    seen = set()
    for number, options in enumerate(SCHEDULES):
        out, report = f"out{number}", f"{number}.json"
        words = ["run", CHAIN, "-q", *options, "--report", report, "in", out]
        assert run_app(words) == 1
        rows = json.loads(Path(report).read_text())["images"]
        order = [(row["input"], row["status"], row["error"]) for row in rows]
        assert [row["input"] for row in rows] == [f"in/{name}" for name in files_in(here / "in")]
        whole = repr((sorted(contents(here / out).items()), order))
        seen.add(hashlib.sha256(whole.encode()).hexdigest())
    assert len(seen) == 1


def many(folder, count, size=100):
    folder.mkdir()
    first = save(folder / "0000.png", noise((size, size, 3), "uint8"), compress_level=0)
    for number in range(1, count):
        os.link(first, folder / f"{number:04}.png")
    return folder


@pytest.mark.parametrize("width", [3, 40])
def test_a_planar_result_is_refused_and_never_written_as_rows(here, capfd, width):
    data = save(here / "in" / "a.png", noise((20, 40, 3), "uint8")).read_bytes()
    text = f"crop --width {width} --height 20 | reformat --layout planar"
    assert run_app(["run", text, "in", "out"]) == 2
    assert "can't hold planar pixels" in capfd.readouterr().err
    assert not (here / "out").exists()
    piped = subprocess.run([*MODULE, "run", text, "-", "-"], input=data, capture_output=True)
    assert (piped.returncode, piped.stdout) == (1, b"")
    assert run_app(["run", f"{text} | reformat --layout interleaved", "in", "out"]) == 0
    there = np.asarray(Image.open(here / "out" / "a.png"))
    assert there.shape == (20, width, 3)


def test_memory_does_not_grow_with_the_number_of_images(here):
    many(here / "few", 60, 400), many(here / "many", 600, 400)
    less, code = peak_mib(*FLIP, "-q", "-j", "2", "few", "out1")
    more, code = peak_mib(*FLIP, "-q", "-j", "2", "many", "out2")
    assert code == 0 and len(files_in(here / "out2")) == 600
    assert more < less + 60  # all pixels together are 288 MB, twice


def test_an_image_far_larger_than_a_batch(here):
    pixels = np.resize(noise((50, 4000, 3), "uint8"), (3000, 4000, 3))  # 36 MB
    assert cv2.imwrite("in.png", pixels, [cv2.IMWRITE_PNG_COMPRESSION, 1])
    run(*FLIP, "--batch-size", 7, "in.png", "out.png")
    np.testing.assert_array_equal(cv2.imread("out.png"), turned(pixels))


def test_a_thousand_icons(here):
    many(here / "in", 1000, 16)
    run(*FLIP, "in", "out")
    assert len(set(contents(here / "out").values())) == 1 and len(files_in(here / "out")) == 1000


# Endings


def heed_interrupts():
    """Undo what a shell does to what it starts in the background: the tests may be that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def started(*words):
    """A run as a process that can be stopped, once its first outputs are there."""
    process = subprocess.Popen(
        [*MODULE, *FLIP, "-q", *words],
        env=environment(),
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    out = Path(words[-1])
    while process.poll() is None and not (out.is_dir() and len(os.listdir(out)) > 3):  # noqa: PTH208
        time.sleep(0.001)
    assert process.poll() is None, "it was over before it could be stopped"
    return process


def assert_whole(out):
    """Each output decodes to what it should be; no temporary file is left."""
    names = os.listdir(out)  # noqa: PTH208
    assert all(name.endswith(".png") and not name.startswith(".") for name in names), names
    assert len({(out / name).read_bytes() for name in names}) == 1
    np.testing.assert_array_equal(load(out / names[0]), turned(load(Path("in/0000.png"))))
    return len(names)


def test_ctrl_c_leaves_whole_outputs_and_says_what_is_left(here):
    before = contents(many(here / "in", 3000))
    process = started("--report", "r.json", "in", "out")
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 130, said
    done = assert_whole(here / "out")
    assert said == f"cvcli: interrupted, {3000 - done} of 3000 images were not done\n"
    totals = json.loads(Path("r.json").read_text())["totals"]
    assert (totals["images"], totals["planned"]) == (done, 3000 - done)
    assert contents(here / "in") == before


def test_ctrl_c_pressed_twice_leaves_no_parts(here):
    many(here / "in", 40, 20)
    # Writes take as long as on a slow disk, so that the second one comes in the middle of them.
    code = (
        "import sys, time; from cvcli.batch import files; from cvcli.cli import main\n"
        "def slow(temporary, data, mode):\n"
        "    data = b''.join(data)\n"
        "    with open(temporary, 'xb') as file:\n"
        "        file.write(data[:99]); file.flush(); time.sleep(0.5); file.write(data[99:])\n"
        "files._write_new = slow; main()\n"
    )
    words = [*FLIP, "-q", "in", "out"]
    process = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        env=environment(),
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    while not (Path("out").is_dir() and any(Path("out").iterdir())):
        time.sleep(0.01)
    for _ in range(2):
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
    said = process.communicate(timeout=60)[1].decode()
    assert "Traceback" not in said
    assert all(not name.startswith(".") for name in files_in(here / "out"))
    assert process.returncode == 130


@pytest.mark.parametrize("module", ["typer", "numpy"])
def test_ctrl_c_while_it_starts_is_no_traceback(here, module):
    many(here / "in", 3)
    code = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: sys.meta_path.remove(self); raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
        "from cvcli.cli import main\n"
        "main()\n"
    )
    done = cvcli(*FLIP, "in", "out", command=[sys.executable, "-c", code])
    assert done.returncode == 130


def test_killed_and_run_again_with_skip_existing(here):
    many(here / "in", 2000)
    for out in ("out1", "out2", "out3"):
        process = started("in", out)
        process.kill()
        process.communicate()
        left = {data for name, data in contents(here / out).items() if not name.startswith(".")}
        assert len(left) == 1
    assert cvcli(*FLIP, "-q", "--skip-existing", "in", "out3").returncode == 0
    assert assert_whole(here / "out3") == 2000


@pytest.mark.parametrize("option", ["--overwrite", "--skip-existing", "-q"])
def test_two_runs_into_one_folder(here, option):
    many(here / "in", 400)
    both = [
        subprocess.Popen(
            [*MODULE, *FLIP, "-q", option, "in", "out"], env=environment(), stderr=subprocess.PIPE
        )
        for _ in range(2)
    ]
    said = [process.communicate(timeout=60)[1].decode() for process in both]
    assert assert_whole(here / "out") == 400
    lines = [line for text in said for line in text.splitlines() if line.startswith("cvcli")]
    assert all(line.endswith("output exists") for line in lines)
    assert option != "--overwrite" or not lines
    # Each image was done by one of them, and refused to the other at most once.
    assert len(lines) <= 400


def test_the_samples_go_through(here):
    run(*FLIP, ROOT / "sample_images", "out")
    names = [name for name in files_in(ROOT / "sample_images") if not name.endswith(".md")]
    assert files_in(here / "out") == names
