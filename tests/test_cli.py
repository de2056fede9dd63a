"""The command as a person or a script meets it: words, messages, streams, reports, names."""

import base64
import csv
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import fresh_python, noise
from PIL import Image

from cvcli.cli.app import run_app

MODULE = [sys.executable, "-m", "cvcli"]
FLIP = ["flip", "--axis", "-1"]


def environment(**extra):
    """The caller's, without what changes how a terminal is used."""
    own = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "TERM")}
    return own | {"CUDA_VISIBLE_DEVICES": "", "TERM": "xterm-256color"} | extra


def cvcli(*words, command=MODULE, env=(), **options):
    """Run the command as a process; what it printed is text, odd bytes as surrogates."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = subprocess.run(
        [*command, *map(os.fspath, words)],
        env=environment(**dict(env)),
        timeout=120,
        **(pipes | options),
    )
    done.stdout = (done.stdout or b"").decode(errors="surrogateescape")
    done.stderr = (done.stderr or b"").decode(errors="surrogateescape")
    assert "Traceback" not in done.stderr, done.stderr
    return done


def peak_mib(*words):
    """The most memory that a run took, and its exit code."""
    code = f"from cvcli.cli.app import run_app\ncode = run_app({[*map(str, words)]})\n"
    code += "status = open('/proc/self/status').read().split()\n"
    code += "print(int(status[status.index('VmHWM:') + 1]) // 1024, code)"
    return tuple(map(int, fresh_python(code, OPENBLAS_NUM_THREADS="1").split()))


def save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    mode = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    Image.fromarray(mode).save(path, **options)
    return path


def folder_of(path, *names, channels=3):
    """A folder of small noise images, each of its own size."""
    for number, name in enumerate(names):
        save(path / name, noise((20, 30 + number, channels), "uint8", number))
    return path


def load(path):
    with Image.open(path) as image:
        array = np.asarray(image)
    return array.reshape(*array.shape[:2], -1)


def files_in(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir())


def contents(folder):
    return {name: (folder / name).read_bytes() for name in files_in(folder)}


def messages(done):
    """What failed, a line each, without the table and the tips."""
    return [line for line in done.stderr.split("\n") if line.startswith("cvcli: ")]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty working folder with ``in/``: a.png, b.png and c.png."""
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "in", "a.png", "b.png", "c.png")
    return tmp_path


USAGE = [
    (["flip", "--axis", "x", "in", "out"], "axis must be an integer, got 'x'"),
    (["flip", "--axis", "1.5", "in", "out"], "axis must be an integer, got '1.5'"),
    (["flip", "in", "out"], "--axis"),
    (["flip", "--axes", "1", "in", "out"], "--axes"),
    ([*FLIP], "INPUT... OUTPUT"),
    ([*FLIP, "in"], "an input and an output must be given"),
    (["flop", "in", "out"], "flip"),
    (["run", "flop --axis 1", "in", "out"], "did you mean flip?"),
    (["run", "invert | flip", "in", "out"], "axis must be given"),
    (["run", "invert", "--axis", "1", "in", "out"], "--axis"),
    (["run", "@missing.txt", "in", "out"], "missing.txt: can't be read"),
    (["run", "", "in", "out"], "at least one step"),
    (["crop", "--width", "0", "--height", "1", "in", "out"], "width must be >= 1, got 0"),
    (["crop", "--width", "99", "--height", "1", "in", "out"], "in/a.png: crop: the rectangle 99x1"),
    (["rotate", "--angle", "nan", "in", "out"], "angle must be finite, got 'nan'"),
    ([*FLIP, "--device", "tpu", "in", "out"], "got 'tpu'"),
    ([*FLIP, "--device", "cuda", "in", "out"], "cuda:0: "),
    ([*FLIP, "--format", "jgp", "in", "out"], "no format is called 'jgp'"),
    ([*FLIP, "--quality", "101", "in", "out"], "--quality"),
    ([*FLIP, "--jobs", "0", "in", "out"], "--jobs"),
    ([*FLIP, "--progress", "maybe", "in", "out"], "'maybe'"),
    ([*FLIP, "--overwrite", "--skip-existing", "in", "out"], "only one of them"),
    ([*FLIP, "--report", "r.txt", "in", "out"], "r.txt: must be named .json or .csv or .html"),
    ([*FLIP, "in", "out.png"], "out.png: looks like a file, but 3 inputs were given"),
    ([*FLIP, "in", "in/a.png"], "in/a.png: a folder is needed"),
    ([*FLIP, "--overwrite", "in", "./in/"], "in/a.png: input would be overwritten"),
    ([*FLIP, "in/a.png", "two/a.png", "out"], "two inputs would write it (in/a.png, two/a.png)"),
]


@pytest.mark.parametrize(("words", "said"), USAGE, ids=lambda value: None)
def test_a_wrong_request_ends_with_2_before_anything_is_written(
    here, words, said, capfd, monkeypatch
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    folder_of(here / "two", "a.png")
    before = contents(here)
    assert run_app(words) == 2
    printed, shown = capfd.readouterr()
    assert printed == "" and said in shown
    assert len([line for line in shown.splitlines() if line.startswith("cvcli: ")]) <= 1
    assert contents(here) == before and not Path("out").exists()


@pytest.mark.parametrize("words", [["--axis", "x"], ["--axes", "1"]])
def test_a_wrong_request_is_2_as_a_process_too(here, words):
    assert cvcli("flip", *words, "in", "out").returncode == 2


@pytest.mark.parametrize("words", [["nope.png"], ["nope*.png", "nada"], ["empty"], ["notes"]])
def test_nothing_matched_is_66(here, words, capfd):
    Path("empty").mkdir()
    (here / "notes" / "sub").mkdir(parents=True)
    (here / "notes" / "a.txt").write_text("hello")
    assert run_app([*FLIP, *words, "out"]) == 66
    printed, shown = capfd.readouterr()
    assert printed == "" and shown.startswith(f"cvcli: {words[0]}")
    assert all(word in shown.splitlines()[0] for word in words)
    assert not Path("out").exists()


def test_an_empty_word_is_a_mistake_and_not_this_folder(here):
    # What an unset shell variable in quotes gives.
    folder_of(here, "mine.png")
    before = contents(here)
    assert cvcli(*FLIP, "", "out").returncode == 2
    assert cvcli(*FLIP, "in", "").returncode == 2
    assert contents(here) == before


def test_options_may_stand_anywhere(here):
    for number, words in enumerate(
        [
            ["flip", "--axis", "-1", "in", "OUT"],
            ["flip", "--axis=-1", "in", "OUT"],
            ["flip", "in", "--axis", "-1", "OUT", "-q"],
            ["flip", "in", "OUT", "--jobs", "1", "--axis", "-1"],
            ["run", "flip --axis -1", "in", "OUT"],
            ["run", "flip --axis=-1", "--quiet", "in", "OUT"],
        ]
    ):
        out = f"out{number}"
        assert cvcli(*[out if word == "OUT" else word for word in words]).returncode == 0
        assert contents(Path(out)) == contents(Path("out0"))
    assert np.array_equal(load("out0/a.png"), load("in/a.png")[::-1, ::-1])


ODD_NAMES = [
    "with space.png",
    "quote'\"`$(x).png",
    "new\nline.png",
    "写真 é.jpg",
    "-r.png",
    "--axis",
    os.fsdecode(b"\xff\xfe.png"),
]


def test_any_name_goes_through_and_comes_back_in_the_report(here):
    for name in ODD_NAMES:
        save(here / "odd" / name, noise((4, 5, 3), "uint8"), format="PNG")
    os.chdir("odd")
    done = cvcli(*FLIP, "--report", "../r.json", "-q", "--", *ODD_NAMES, "../out")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert files_in(here / "out") == sorted(ODD_NAMES)
    rows = json.loads(Path("../r.json").read_text())["images"]
    assert [row["input"] for row in rows] == ODD_NAMES
    assert base64.b64decode(rows[-1]["input_b64"]) == b"\xff\xfe.png"
    assert cvcli(*FLIP, "-v", ODD_NAMES[-1], "../verbose").returncode == 0


@pytest.mark.parametrize("name", ["new\nline.png", "car\rriage.png", "\x1b[31mred.png"])
def test_a_name_never_breaks_the_line_or_the_terminal(here, name):
    (here / name).write_bytes(b"no image")
    done = cvcli(*FLIP, "-q", name, "in/a.png", "out")
    assert done.returncode == 1
    assert not set(done.stderr.rstrip("\n")) & {"\n", "\r", "\x1b"}


def test_dry_run_prints_the_plan_and_touches_nothing(here):
    folder_of(here / "out", "b.png")
    before = contents(here)
    words = [*FLIP, "--dry-run", "--skip-existing", "--report", "r.json", "in", "nope.png", "out"]
    done = cvcli(*words)
    assert (done.returncode, done.stderr) == (0, "")
    plan = json.loads(done.stdout)
    assert plan["schema_version"] == 1 and plan["started"] is None
    assert [(row["input"], row["output"], row["status"]) for row in plan["images"]] == [
        ("in/a.png", "out/a.png", "planned"),
        ("in/b.png", "out/b.png", "skipped"),
        ("in/c.png", "out/c.png", "planned"),
        ("nope.png", None, "failed"),
    ]
    assert contents(here) == before


def test_reports_have_a_row_an_image_with_times(here):
    (here / "in" / "bad.png").write_bytes(b"")
    done = cvcli("run", "flip --axis 1 | invert", "--report", "new/r.json", "-j", "2", "in", "out")
    assert done.returncode == 1
    report = json.loads(Path("new/r.json").read_text())
    assert (report["schema_version"], report["device"]) == (1, "cpu")
    assert [(row["input"], row["status"]) for row in report["images"]] == [
        ("in/a.png", "ok"),
        ("in/b.png", "ok"),
        ("in/bad.png", "failed"),
        ("in/c.png", "ok"),
    ]
    good, bad = report["images"][0], report["images"][2]
    assert {"read", "decode", "encode", "write"} < set(good["ms"]) and min(good["ms"].values()) > 0
    assert (good["width_in"], good["height_out"], good["device"]) == (30, 20, "cpu")
    assert good["bytes_out"] == Path("out/a.png").stat().st_size
    assert bad["error"] == "in/bad.png: empty file"
    assert report["totals"]["images"] == 3 and report["totals"]["failed"] == 1
    assert cvcli(*FLIP, "--report", "r.csv", "--overwrite", "in", "out").returncode == 1
    with Path("r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["status"] for row in rows] == ["ok", "ok", "failed", "ok"]
    assert {row["schema_version"] for row in rows} == {"1"} and float(rows[0]["ms: flip"]) > 0


@pytest.mark.parametrize("options", [[], ["--progress", "always"], ["--progress", "never"], ["-v"]])
def test_no_terminal_gets_no_control_codes_and_stdout_nothing(here, options):
    done = cvcli(*FLIP, *options, "in", "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert "3 images, 0 failed" in done.stderr and "decode" in done.stderr
    assert not set(done.stderr) & {"\r", "\x1b", "\b"}
    if options == ["-v"]:
        assert [line.split(" (")[0] for line in done.stderr.splitlines()[:3]] == [
            f"in/{name}.png -> out/{name}.png" for name in "abc"
        ]


def on_terminal(*words, **env):
    """What a terminal on stderr is sent."""
    master, slave = pty.openpty()
    with subprocess.Popen([*MODULE, *words], stderr=slave, env=environment(**env)) as process:
        os.close(slave)
        sent = b""
        try:
            while data := os.read(master, 1 << 16):
                sent += data
        except OSError:  # Linux says so when the other end is closed
            pass
    os.close(master)
    assert process.returncode == 0, sent
    return sent.decode()


def test_a_terminal_gets_a_bar_that_goes_away(here):
    bar, colour = "0/3", "\x1b[3"
    shown = on_terminal(*FLIP, "in", "out")
    assert bar in shown and colour in shown
    bars, _, summary = shown.partition("\x1b[?25h")  # the cursor is back
    assert "3 images, 0 failed" in summary and "images/s" in bars
    plain = on_terminal(*FLIP, "--overwrite", "in", "out", NO_COLOR="1")
    assert bar in plain and colour not in plain
    assert bar not in on_terminal(*FLIP, "--overwrite", "--progress", "never", "in", "out")
    dumb = on_terminal(*FLIP, "--overwrite", "in", "out", TERM="dumb")
    assert bar not in dumb and "\x1b" not in dumb
    assert on_terminal(*FLIP, "--overwrite", "-q", "in", "out") == ""


def test_quiet_prints_failures_and_nothing_else(here):
    (here / "in" / "bad.png").write_bytes(b"hello, I am text")
    done = cvcli(*FLIP, "--quiet", "in", "nope.png", "out")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "cvcli: in/bad.png: not an image, or of a format that isn't supported",
        "cvcli: nope.png: no such file",
    ]


def test_stdin_is_not_waited_for(here):
    reading, writing = os.pipe()  # stays open and empty, so reading it would hang
    try:
        assert cvcli(*FLIP, "in", "out", stdin=reading).returncode == 0
    finally:
        os.close(reading), os.close(writing)


@pytest.mark.parametrize("closed", [1, 2])
def test_a_closed_stream_is_no_failure(here, closed):
    # What some service managers and `>&-` give.
    shell = ["sh", "-c", f'exec "$@" {closed}>&-', "sh", *MODULE]
    done = cvcli(*FLIP, "in", "out", command=shell)
    assert files_in(here / "out") == ["a.png", "b.png", "c.png"]
    assert done.returncode == 0
    assert len(load("out/a.png")) == 20  # and what was written is no message


@pytest.mark.parametrize("buffered", ("", "1"))
def test_messages_that_can_not_be_written_stop_no_image(here, buffered):
    env = {"PYTHONUNBUFFERED": buffered}
    with Path("/dev/full").open("wb") as full:
        done = cvcli(*FLIP, "in", "nope.png", "out", stderr=full, env=env)
        assert files_in(here / "out") == ["a.png", "b.png", "c.png"] and done.returncode == 1
        done = cvcli(*FLIP, "--dry-run", "in", "out2", stdout=full)
    assert done.returncode == 1 and "no space left" in done.stderr.lower()


def test_a_reader_that_goes_away_is_no_traceback(here):
    reading, writing = os.pipe()
    os.close(reading)
    done = cvcli(*FLIP, "--dry-run", "in", "out", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


def test_fail_fast_starts_no_more_and_says_what_is_left(here):
    (here / "in" / "0bad.png").write_bytes(b"")
    done = cvcli(*FLIP, "--fail-fast", "-j", "1", "--report", "r.json", "in", "out")
    assert done.returncode == 1 and not Path("out").exists()
    states = [row["status"] for row in json.loads(Path("r.json").read_text())["images"]]
    assert states == ["failed", "planned", "planned", "planned"]
    # As after Ctrl-C: a person must not take the rest for done.
    assert "3 of 4 images were not done" in done.stderr


@pytest.mark.parametrize("trouble", ["nope.png", "taken.png"])
def test_fail_fast_counts_what_fails_before_it_is_read(here, trouble):
    folder_of(here, "taken.png"), folder_of(here / "out", "taken.png")
    assert cvcli(*FLIP, "--fail-fast", "-j", "1", trouble, "in", "out").returncode == 1
    assert files_in(here / "out") == ["taken.png"]


def test_existing_outputs(here):
    folder_of(here / "out", "b.png")
    old = contents(here / "out")["b.png"]
    done = cvcli(*FLIP, "-q", "in", "out")
    assert done.returncode == 1 and contents(here / "out")["b.png"] == old
    assert messages(done) == ["cvcli: out/b.png: output exists"]
    assert "--overwrite" in done.stderr and "--skip-existing" in done.stderr
    done = cvcli(*FLIP, "--skip-existing", "-v", "in", "out")
    assert done.returncode == 0 and "out/b.png exists, skipped" in done.stderr
    assert "3 skipped" in done.stderr and contents(here / "out")["b.png"] == old
    assert cvcli(*FLIP, "--overwrite", "in", "out").returncode == 0
    assert np.array_equal(load("out/b.png"), load("in/b.png")[::-1, ::-1])


def test_trees_single_files_and_formats(here):
    folder_of(here / "in" / "deep" / "er", "d.png")
    assert cvcli(*FLIP, "in", "flat").returncode == 0
    assert files_in(here / "flat") == ["a.png", "b.png", "c.png"]
    for _ in range(2):  # the output inside the input is not read again
        assert cvcli(*FLIP, "-r", "--overwrite", "in", "in/out").returncode == 0
    assert files_in(here / "in" / "out") == ["a.png", "b.png", "c.png", "deep/er/d.png"]
    assert cvcli(*FLIP, "in/a.png", "new/x.webp").returncode == 0
    assert cvcli(*FLIP, "in/a.png", "new/y", "--format", "tif").returncode == 0
    assert files_in(here / "new") == ["x.webp", "y/a.tiff"]
    with Image.open("new/x.webp") as one, Image.open("new/y/a.tiff") as other:
        assert (one.format, other.format) == ("WEBP", "TIFF")


def test_the_cpu_needs_no_cupy(here):
    words = [*FLIP, "--device", "cpu", "in", "out"]
    code = f"import sys; from cvcli.cli.app import run_app; print(run_app({words}), 'cupy' in "
    assert fresh_python(code + "sys.modules)") == "0 False"
