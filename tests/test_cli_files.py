"""No file is ever lost: bad inputs, outputs in the way, folders and disks that refuse."""

import ctypes
import io
import os
import resource
import struct
import zlib
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from conftest import noise
from PIL import Image
from test_cli import FLIP, contents, cvcli, files_in, folder_of, load, messages, peak_mib, save

from cvcli.batch import files
from cvcli.batch.plan import make_plan
from cvcli.batch.report import Report
from cvcli.batch.run import Options, run
from cvcli.cli.app import run_app
from cvcli.core.chain import Chain
from cvcli.ops import operator_named

HALF_TURN = Chain((operator_named("flip").step(axis=-1),))
_PR_CAPBSET_DROP, _DAC_OVERRIDE, _DAC_READ_SEARCH = 24, 1, 2


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "in", "a.png", "b.png", "c.png")
    return tmp_path


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def short_png(width, height, depth=8, colour=0, rows=1):
    """A PNG whose header promises more rows than it holds, its chunks all in order."""
    channels = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    raw = bytes((1 + (width * depth * channels + 7) // 8) * rows)
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def saved(pixels, format, **options):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format, **options)
    return file.getvalue()


def assert_all_done(out, *names):
    """The outputs are there, whole and right, and nothing else is."""
    assert files_in(Path(out)) == sorted(names)
    for name in names:
        assert np.array_equal(load(Path(out, name)), load(Path("in", name))[::-1, ::-1])


def unprivileged():
    """Make root, whom no permission stops, a user like others; for ``preexec_fn``."""
    for capability in (_DAC_OVERRIDE, _DAC_READ_SEARCH):
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


@pytest.fixture
def mode():
    """Change modes, and give the old ones back so that pytest can clean up."""
    changed = []

    def change(path, bits):
        changed.append((path, Path(path).stat().st_mode))
        os.chmod(path, bits)  # noqa: PTH101

    yield change
    for path, bits in reversed(changed):
        os.chmod(path, bits)  # noqa: PTH101


def test_bad_inputs_fail_alone_in_a_line_each(here):
    whole = saved(noise((90, 80, 3), "uint8"), "JPEG")
    bad = {
        "cut.jpg": (whole[: len(whole) // 2], "truncated JPEG data"),
        "cut.png": (Path("in/a.png").read_bytes()[:900], "truncated PNG data"),
        "empty.png": (b"", "empty file"),
        "giga.png": (short_png(60000, 60000, 1), "60000x60000 is 3600000000 pixels, more than"),
        "head.png": (b"\x89PNG\r\n\x1a\n", "truncated PNG header"),
        "none.png": (short_png(0, 10, rows=0), "no pixels"),
        "short.png": (short_png(30, 30, colour=2), "truncated PNG data"),
        "text.jpg": (b"hello, I am text", "not an image"),
    }
    for name, (data, _) in bad.items():
        Path("in", name).write_bytes(data)
    Path("in/folder.png").mkdir(), Path("link.png").symlink_to("gone.png"), os.mkfifo("pipe.png")
    before = contents(here / "in")
    done = cvcli(*FLIP, "-q", "in", "gone.png", "link.png", "pipe.png", "out")
    assert done.returncode == 1
    wanted = [(f"in/{name}", reason) for name, (_, reason) in sorted(bad.items())]
    wanted += [("gone.png", "no such file"), ("link.png", "broken link")]
    wanted += [("pipe.png", "not a regular file")]
    said = messages(done)
    assert len(said) == len(wanted)
    for line, (name, reason) in zip(said, wanted, strict=True):
        assert line.startswith(f"cvcli: {name}: {reason}") or reason in line, line
    assert "--max-pixels 3600000000" in done.stderr
    assert_all_done("out", "a.png", "b.png", "c.png")
    assert contents(here / "in") == before


@pytest.mark.parametrize(("colour", "channels"), [(0, 1), (2, 3), (4, 2), (6, 4)])
@pytest.mark.parametrize("damage", ["rows missing", "bit flipped"])
def test_a_corrupt_png_takes_nothing_down_with_it(here, colour, channels, damage):
    if damage == "rows missing":
        Path("in/bad.png").write_bytes(short_png(50, 40, colour=colour, rows=10))
    else:
        data = bytearray(save(here / "in/bad.png", noise((40, 50, channels), "uint8")).read_bytes())
        data[len(data) // 2] ^= 1
        Path("in/bad.png").write_bytes(data)
    done = cvcli(*FLIP, "-q", "in", "out")
    assert done.returncode == 1  # not a signal
    assert len(messages(done)) == 1 and "in/bad.png" in done.stderr
    assert_all_done("out", "a.png", "b.png", "c.png")


def test_images_that_fail_give_their_memory_back(here):
    data = short_png(2000, 2000, colour=2, rows=200)
    for number in range(100):
        Path(f"in/bad{number}.png").write_bytes(data)
    peak, code = peak_mib(*FLIP, "-q", "-j", "2", "in", "out")
    assert code == 1 and peak < 500  # of 1200 that the images would take together
    assert_all_done("out", "a.png", "b.png", "c.png")


def test_a_file_larger_than_memory_fails_alone(here):
    with Path("in/b0.png").open("wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n")
        file.truncate(1 << 40)
    limit = partial(resource.setrlimit, resource.RLIMIT_AS, (16 << 30, 16 << 30))
    done = cvcli(*FLIP, "-q", "in", "out", preexec_fn=limit)
    assert done.returncode == 1
    assert len(messages(done)) == 1 and "in/b0.png: " in done.stderr
    assert_all_done("out", "a.png", "b.png", "c.png")


@pytest.mark.parametrize("data", [b"\xff\xd8", b"xx", b"BM", b"\0"])
def test_a_few_bytes_are_called_what_they_are(here, data):
    Path("in/few.jpg").write_bytes(data)
    done = cvcli(*FLIP, "-q", "in", "out")
    assert done.returncode == 1 and "in/few.jpg" in done.stderr
    assert "not an image" in done.stderr or "truncated" in done.stderr, done.stderr
    assert "unpack_from" not in done.stderr


def test_a_crop_that_fits_some_does_those_and_one_that_fits_none_is_a_mistake(here):
    crop = ["crop", "--width", "31", "--height", "20", "--gravity", "center"]
    done = cvcli(*crop, "-q", "in", "out")
    assert done.returncode == 1 and files_in(here / "out") == ["b.png", "c.png"]
    assert messages(done) == [
        "cvcli: in/a.png: crop: the rectangle 31x20 must be inside the image, got 30x20"
    ]
    assert np.array_equal(load("out/c.png"), load("in/c.png")[:, :31])
    # Run again after the failure is looked into: still one failed image, not a wrong crop.
    done = cvcli(*crop, "-q", "--skip-existing", "in", "out")
    assert done.returncode == 1 and len(messages(done)) == 1
    done = cvcli(*crop, "in/a.png", "out2")
    assert done.returncode == 2 and not Path("out2").exists()


@pytest.mark.parametrize("output", ["in", "out/../in", "link/../in", "link"])
def test_no_spelling_of_the_output_overwrites_an_input(here, output):
    Path("link").symlink_to("in")
    before = contents(here / "in")
    code = run_app([*FLIP, "-q", "--overwrite", "in", output])
    assert contents(here / "in") == before
    assert code == 2


@pytest.mark.parametrize("name", ["data.json", "chain.json", "out/data.json"])
def test_a_report_overwrites_no_input_and_no_output(here, name):
    save(here / "data.json", noise((4, 5, 3), "uint8"), format="PNG")
    Path("chain.json").write_text("flip --axis -1\n")
    before = contents(here)
    code = run_app(["run", "@chain.json", "-q", "--report", name, "data.json", "out"])
    kept = contents(here)
    assert {path: kept.get(path) for path in before} == before
    if code == 0:
        assert np.array_equal(load("out/data.json"), load("data.json")[::-1, ::-1])
    assert code == 2


@pytest.mark.parametrize("name", ["locked/r.json", "shut/r.json", "n" * 300 + ".json"])
def test_a_report_that_can_not_be_written_is_refused_before_the_run(here, mode, name):
    Path("locked").mkdir(), Path("shut").mkdir()
    mode("locked", 0o555), mode("shut", 0)
    Path("in/bad.png").write_bytes(b"")
    done = cvcli(*FLIP, "-q", "--report", name, "in", "out", preexec_fn=unprivileged)
    assert name in done.stderr and "stdout" not in done.stderr
    assert done.returncode == 2 and not Path("out").exists()


def test_a_report_that_fails_at_the_end_hides_no_failure(here, monkeypatch, capfd):
    Path("in/bad.png").write_bytes(b"")

    def full(self, path):
        raise files.ImageError(f"{path}: no space left on device")

    monkeypatch.setattr(Report, "write", full)
    assert run_app([*FLIP, "-q", "--report", "r.json", "in", "out"]) == 1
    shown = capfd.readouterr().err
    assert "r.json: no space left on device" in shown and "in/bad.png: empty file" in shown


@pytest.mark.parametrize("output", ["locked", "locked/new/er", "shut/new", "n" * 300])
def test_an_output_folder_that_can_not_be_written_is_a_usage_error(here, mode, output):
    Path("locked").mkdir(), Path("shut").mkdir()
    mode("locked", 0o555), mode("shut", 0)
    done = cvcli(*FLIP, "in", output, preexec_fn=unprivileged)
    assert len(messages(done)) == 1 and output in done.stderr and "stdout" not in done.stderr
    assert done.returncode == 2


def test_unreadable_inputs_fail_alone(here, mode):
    folder_of(here / "shut", "d.png"), folder_of(here, "secret.png")
    mode("in/b.png", 0), mode("shut", 0), mode("secret.png", 0)
    for number, named in enumerate([[], ["shut"], ["secret.png"], ["shut/d.png"]]):
        out = f"out{number}"
        done = cvcli(*FLIP, "-q", *named, "in", out, preexec_fn=unprivileged)
        assert messages(done) == [
            f"cvcli: {name}: permission denied" for name in [*named, "in/b.png"]
        ], done.stderr
        assert done.returncode == 1 and files_in(Path(out)) == ["a.png", "c.png"]


def test_a_folder_inside_the_output_that_refuses_stops_only_its_own(here, mode):
    folder_of(here / "in" / "sub", "d.png")
    (here / "out" / "sub").mkdir(parents=True)
    mode("out/sub", 0o555)
    done = cvcli(*FLIP, "-q", "-r", "in", "out", preexec_fn=unprivileged)
    assert done.returncode == 1
    assert messages(done) == ["cvcli: out/sub/d.png: permission denied"]
    assert_all_done("out", "a.png", "b.png", "c.png")


def test_a_folder_that_may_be_written_but_not_listed_is_an_output(here, mode):
    Path("drop").mkdir()
    mode("drop", 0o333)
    assert cvcli(*FLIP, "-q", "in", "drop", preexec_fn=unprivileged).returncode == 0


def test_a_full_disk_fails_what_has_no_room_and_leaves_no_parts(here, monkeypatch, capfd):
    big = {"a.png", "c.png"}
    plain = open
    Path("out").mkdir()

    def disk(path, how):
        # The temporary name says nothing; b.png is written when one image is done at a time.
        disk.count += 1
        return plain(path, how) if disk.count == 2 else io.FileIO("/dev/full", "w")

    disk.count = 0
    with monkeypatch.context() as patch:
        patch.setattr(files, "open", lambda p, how: (disk if "x" in how else plain)(p, how), False)
        assert run_app([*FLIP, "-q", "-j", "1", "in", "out"]) == 1
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2 and all(line.endswith(": no space left on device") for line in said)
    assert {line.split(": ")[1] for line in said} == {f"out/{name}" for name in big}
    assert_all_done("out", "b.png")


def test_a_limit_that_some_images_do_not_fit(here):
    save(here / "in" / "large.png", noise((200, 200, 3), "uint8"))
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (10_000, 10_000))
    done = cvcli(*FLIP, "-q", "in", "out", preexec_fn=limit)
    assert done.returncode == 1
    assert messages(done) == ["cvcli: out/large.png: file too large"]
    assert_all_done("out", "a.png", "b.png", "c.png")


@pytest.mark.parametrize("change", ["deleted", "cut", "replaced", "taken", "folder gone"])
def test_what_changes_after_the_plan_is_that_files_own_trouble(here, change):
    plan = make_plan([Path("in")], Path("out"))
    report = Report(plan)
    victim, wanted = Path("in/b.png"), None
    if change == "deleted":
        victim.unlink()
        wanted = "in/b.png: no such file"
    elif change == "cut":
        os.truncate(victim, 500)
        wanted = "in/b.png: truncated PNG data"
    elif change == "replaced":
        victim.unlink(), victim.mkdir()
        wanted = "in/b.png: is a directory"
    elif change == "taken":
        Path("out").mkdir(), Path("out/b.png").write_bytes(b"mine")
        wanted = "out/b.png: output exists"
    run(plan, HALF_TURN, Options(jobs=1), report)
    assert [row.error for row in report.rows] == [None, wanted, None]
    if change == "taken":
        assert Path("out/b.png").read_bytes() == b"mine"
        Path("out/b.png").unlink()
    assert_all_done("out", *(["a.png", "c.png"] if wanted else ["a.png", "b.png", "c.png"]))
