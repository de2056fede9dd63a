"""Images and tars through stdin and stdout."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import pty
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import noise
from test_cli import FLIP, MODULE, contents, environment, files_in, folder_of, load, messages, save
from test_run import heed_interrupts
from within import cvcli

from cvcli.batch.tar import Prefixed, is_tar, members
from cvcli.errors import ImageError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "in", "a.png", "b.png", "x/c.png")
    return tmp_path


def shell(line):
    """Run a pipeline; return the exit codes of its parts."""
    words = " ".join(MODULE)
    script = line.replace("cvcli", words) + '; echo "${PIPESTATUS[@]}" >&2'
    done = subprocess.run(
        ["bash", "-c", script], env=environment(), capture_output=True, timeout=120
    )
    return [int(code) for code in done.stderr.decode().splitlines()[-1].split()]


def tar(*entries):
    """A tar of (name, data) pairs, or of ready-made headers."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for entry in entries:
            if isinstance(entry, tarfile.TarInfo):
                archive.addfile(entry)
                continue
            info = tarfile.TarInfo(entry[0])
            info.size, info.mtime = len(entry[1]), 1000
            archive.addfile(info, io.BytesIO(entry[1]))
    return file.getvalue()


def untar(data):
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return {info.name: archive.extractfile(info).read() for info in archive}


def special(name, kind, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


# One image


def test_an_image_goes_through(here):
    data = Path("in/a.png").read_bytes()
    done = cvcli(*FLIP, "-", "-", data=data)
    Path("out.png").write_bytes(done.stdout)
    assert np.array_equal(load("out.png"), load("in/a.png")[::-1, ::-1])
    assert "1 image, 0 failed" in done.stderr
    done = cvcli(*FLIP, "-q", "--format", "webp", "-", "-", data=data)
    assert done.stdout[8:12] == b"WEBP" and done.stderr == ""


def test_an_image_from_stdin_to_files_and_back(here):
    data = Path("in/a.png").read_bytes()
    cvcli(*FLIP, "-q", "-", "new/b.png", data=data)
    cvcli(*FLIP, "-q", "-", "new/", data=data)
    cvcli(*FLIP, "-q", "--name", "{stem}-{width}.{ext}", "-", "new", data=data)
    assert files_in(here / "new") == ["b.png", "stdin-30.png", "stdin.png"]
    assert len(set(contents(here / "new").values())) == 1
    assert cvcli(*FLIP, "-q", "in/a.png", "-").stdout == Path("new/b.png").read_bytes()
    cvcli(*FLIP, "-q", "-", "new/b.png", data=data, code=1)  # it exists
    cvcli(*FLIP, "-q", "--check", "-", "new/b.png", data=data)


@pytest.mark.parametrize("data", [b"hello, I am no image" * 50, b"\x89PNG\r\n\x1a\n", b"x"])
def test_what_is_no_image_fails_and_writes_nothing(data):
    done = cvcli(*FLIP, "-q", "-", "-", data=data, code=1)
    assert done.stdout == b"" and done.stderr.startswith("cvcli: -: ")
    assert cvcli(*FLIP, "-q", "-", "-", code=66).stdout == b""


# Folders as tars


def test_a_folder_streams_as_a_tar_that_others_read(here):
    cvcli(*FLIP, "-q", "-r", "in", "out")
    os.utime("in/a.png", ns=(0, 5_000_000_000))
    done = cvcli(*FLIP, "-q", "-r", "in", "-")
    assert untar(done.stdout) == contents(here / "out")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        assert [info.name for info in archive] == ["a.png", "b.png", "x/c.png"]
        assert archive.getmember("a.png").mtime == 5
    # Equal runs give equal bytes, however many workers there are.
    assert cvcli(*FLIP, "-q", "-r", "-j", "5", "in", "-").stdout == done.stdout
    assert cvcli(*FLIP, "-q", "in/a.png", "in/b.png", "-").stdout[:5] == b"a.png"
    Path("odd").mkdir()
    name = os.fsdecode(b"\xff" + b"n" * 150 + b".png")
    save(here / "odd" / name, noise((3, 3, 1), "uint8"))
    assert list(untar(cvcli(*FLIP, "-q", "odd", "-").stdout)) == [name]


def test_a_tar_from_stdin_goes_to_a_folder(here):
    cvcli(*FLIP, "-q", "-r", "in", "out")
    data = subprocess.run(["tar", "c", "-C", "in", "."], capture_output=True, check=True).stdout
    assert is_tar(data[:512])
    cvcli(*FLIP, "-q", "-", "out2", data=data)
    assert contents(here / "out2") == contents(here / "out")
    # As with folders: what exists is left, or skipped, or compared.
    done = cvcli(*FLIP, "-q", "-", "out2", data=data, code=1)
    assert len(messages(done)) == 3 and "output exists" in done.stderr
    assert "3 skipped" in cvcli(*FLIP, "--skip-existing", "-", "out2", data=data).stderr
    cvcli(*FLIP, "-q", "--check", "-", "out2", data=data)
    Path("out2/a.png").unlink()
    done = cvcli(*FLIP, "-q", "--check", "-", "out2", data=data, code=1)
    assert messages(done) == ["cvcli: out2/a.png: output is missing"]


def test_names_filters_and_formats_work_on_tars(here):
    image = Path("in/a.png").read_bytes()
    names = ["a.png", ".h.png", "._a.png", "x/.g/b.png", "notes.txt", "noext", "x/d.png"]
    data = tar(*((name, image if name != "notes.txt" else b"hello") for name in names))
    cvcli(*FLIP, "-q", "-", "one", data=data)
    assert files_in(here / "one") == ["a.png", "noext", "x/d.png"]
    words = ["--exclude", "x", "--name", "{stem}-{width}.{ext}", "--format", "webp"]
    cvcli(*FLIP, "-q", *words, "-", "two", data=data)
    assert files_in(here / "two") == ["a-30.webp", "noext-30.webp"]


def test_commands_compose(here):
    codes = shell("cvcli flip --axis 1 -r in/ - | cvcli invert - - | cvcli flip --axis 0 - out/")
    assert codes == [0, 0, 0]
    cvcli("run", "flip --axis 1 | invert | flip --axis 0", "-q", "-r", "in", "once")
    assert contents(here / "out") == contents(here / "once")


def test_a_tar_is_streamed_in_bounded_memory(here):
    first = save(here / "many" / "0.png", noise((500, 500, 3), "uint8"), compress_level=0)
    for number in range(1, 200):
        os.link(first, here / "many" / f"{number}.png")
    code = "import resource, sys\nfrom cvcli.cli.app import run_app\ncode = run_app(sys.argv[1:])\n"
    code += "status = open('/proc/self/status').read().split()\n"
    code += "print(int(status[status.index('VmHWM:') + 1]) // 1024, code, file=sys.stderr)\n"
    start = [sys.executable, "-c", code, *FLIP, "-q", "-j", "2"]
    pipes = {"stderr": subprocess.PIPE, "env": environment()}
    with (
        subprocess.Popen([*start, "many", "-"], stdout=subprocess.PIPE, **pipes) as writer,
        subprocess.Popen([*start, "-", "out"], stdin=writer.stdout, **pipes) as reader,
    ):
        writer.stdout.close()
        peaks = [process.communicate(timeout=100)[1].split() for process in (reader, writer)]
    assert len(files_in(here / "out")) == 200
    for peak, code in peaks:
        assert code == b"0" and int(peak) < 220  # all images together are 150 MB, twice


@pytest.mark.gpu
def test_a_gpu_gives_the_same_tar_as_the_cpu(here):
    for number in range(60):
        size = (50 + 40 * (number % 7), 300 + number, 3)
        save(here / "many" / f"{number:02}.png", noise(size, "uint8", number), compress_level=1)
    made = []
    for options in (["--device", "cpu"], ["--device", "cuda"], ["--device", "cuda", "-j", "9"]):
        words = [*MODULE, *FLIP, "-q", *options, "--batch-size", "4", "many", "-"]
        made.append(subprocess.run(words, capture_output=True, check=True, timeout=120).stdout)
    assert len(untar(made[0])) == 60 and made[0] == made[1] == made[2]


# Tars that are not to be trusted


def test_members_that_lead_outside_are_refused(here):
    image = Path("in/a.png").read_bytes()
    good = ("good.png", image)
    data = tar(
        good,
        ("../up.png", image),
        ("/root.png", image),
        ("x/../../up.png", image),
        special("link.png", tarfile.SYMTYPE, "/etc/passwd"),
        special("hard.png", tarfile.LNKTYPE, "good.png"),
        special("device.png", tarfile.CHRTYPE),
        special("fifo.png", tarfile.FIFOTYPE),
        special("folder.png", tarfile.DIRTYPE),
        ("GOOD.png", image),
        ("good.png/x.png", image),
    )
    done = cvcli(*FLIP, "-q", "-", "deep/out", data=data, code=1)
    assert files_in(here / "deep") == ["out/good.png"]
    said = messages(done)
    assert [line.rsplit(": ", 1)[1] for line in said] == [
        *["its place in the tar is outside of it"] * 3,
        *["a link in a tar is not followed"] * 2,
        *["not a regular file"] * 2,
        "good.png has the same output, GOOD.png",
        "good.png has the same output, good.png/x.png",
    ]
    assert "tip: tar --dereference --hard-dereference" in done.stderr
    assert sorted(os.listdir(here)) == ["deep", "in"]  # noqa: PTH208


def test_every_truncation_of_a_tar_is_noticed(here):
    data = tar(("a.png", b"a" * 700), ("b.png", b"b" * 300))
    whole = data[: 512 + 1024 + 512 + 512 + 512]
    assert [m.name for m in members(Prefixed(b"", io.BytesIO(whole)))] == ["a.png", "b.png"]
    for size in range(0, len(whole) - 1, 64):
        seen = []
        with pytest.raises(ImageError, match="truncated tar"):
            seen.extend(members(Prefixed(b"", io.BytesIO(whole[:size]))))


def test_a_truncated_tar_fails_clearly_and_its_whole_members_are_done(here):
    data = cvcli(*FLIP, "-q", "-r", "in", "-").stdout
    cut = data[: len(data) // 2]
    done = cvcli(*FLIP, "-q", "-", "out", data=cut, code=1)
    assert messages(done)[-1].startswith("cvcli: -: truncated tar")
    assert np.array_equal(load("out/a.png"), load("in/a.png"))
    # Whoever reads on is told too: the end is missing there as well.
    done = cvcli(*FLIP, "-q", "-", "-", data=cut, code=1)
    with pytest.raises(ImageError, match="truncated tar"):
        list(members(Prefixed(b"", io.BytesIO(done.stdout))))


def test_a_run_that_stops_early_leaves_its_tar_without_an_end(here):
    Path("in/a2.png").write_bytes(b"no image")
    done = cvcli(*FLIP, "-q", "-j", "1", "--fail-fast", "--batch-size", "1", "in", "-", code=1)
    with pytest.raises(ImageError, match="truncated tar"):
        list(members(Prefixed(b"", io.BytesIO(done.stdout))))
    done = cvcli(*FLIP, "-q", "in", "-", code=1)  # it did all it could
    assert [m.name for m in members(Prefixed(b"", io.BytesIO(done.stdout)))] == ["a.png", "b.png"]


def test_garbage_inside_a_tar_is_corrupt(here):
    data = bytearray(tar(("a.png", Path("in/a.png").read_bytes()), ("b.png", b"b" * 10)))
    at = data.index(b"b.png")
    data[at : at + 100] = b"\xaa" * 100
    done = cvcli(*FLIP, "-q", "-", "out", data=bytes(data), code=1)
    assert "cvcli: -: corrupt tar" in done.stderr and files_in(here / "out") == ["a.png"]


@pytest.mark.parametrize("data", [bytes(10240), tar(("notes.txt", b"hi")), tar()])
def test_a_tar_without_images_is_no_input(data):
    done = cvcli(*FLIP, "-", "out", data=data, code=66)
    assert "-: no image files found in the tar" in done.stderr and not Path("out").exists()


def test_one_bad_member_fails_alone(here):
    image = Path("in/a.png").read_bytes()
    data = tar(("bad.png", b"hello"), ("empty.png", b""), ("good.png", image))
    done = cvcli(*FLIP, "-q", "-", "-", data=data, code=1)
    assert list(untar(done.stdout)) == ["good.png"]
    assert [line.split(": ")[1] for line in messages(done)] == ["bad.png", "empty.png"]
    done = cvcli(*FLIP, "-q", "-j", "1", "--fail-fast", "-", "out", data=data, code=1)
    assert not Path("out").exists() and "bad.png" in done.stderr


# Streams


def test_a_closed_pipe_ends_quietly(here):
    for words in (["in/a.png"], ["-r", "in"]):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*MODULE, *FLIP, *words, "-"], env=environment(), stdout=writing, stderr=subprocess.PIPE
        )
        os.close(writing)
        assert (done.returncode, done.stderr) == (141, b"")


def test_a_stdin_that_can_not_be_read_is_told(here):
    with Path("x").open("wb") as unreadable:
        done = subprocess.run(
            [*MODULE, *FLIP, "-", "out"], env=environment(), stdin=unreadable, capture_output=True
        )
    assert done.returncode == 2
    assert done.stderr == b"cvcli: -: stdin can't be read (bad file descriptor)\n"


def test_a_full_stdout_is_told(here):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [*MODULE, *FLIP, "-q", "in", "-"],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert done.returncode == 1
    assert done.stderr == b"cvcli: stdout can't be written (No space left on device)\n"


def test_binary_is_not_written_to_a_terminal_nor_read_from_one(here):
    master, slave = pty.openpty()
    try:
        for words, stream in ((["in", "-"], "stdout"), (["-", "out"], "stdin")):
            streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE} | {stream: slave}
            done = subprocess.run(
                [*MODULE, *FLIP, *words], env=environment(), stderr=subprocess.PIPE, **streams
            )
            assert done.returncode == 2 and done.stderr.startswith(b"cvcli: -: ")
            assert b"tip: use " in done.stderr
    finally:
        os.close(master), os.close(slave)
    assert not Path("out").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["-", "in/a.png", "out"],
        ["--files-from", "list", "-", "out"],
        ["--in-place", "-"],
        ["--overwrite", "in", "-"],
        ["--check", "in", "-"],
        ["--skip-existing", "-", "-"],
        ["--dry-run", "-", "out"],
        ["-", "out.png"],
    ],
    ids=" ".join,
)
def test_what_makes_no_sense_with_pipes_is_refused(words):
    Path("list").write_text("in/a.png\n")
    done = cvcli(*FLIP, *words, data=tar(("a.png", b"x")), code=2)
    assert done.stdout == b"" and not Path("out").exists()


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_compressed_tar_is_told_from_an_image(pack):
    done = cvcli(*FLIP, "-", "out", data=pack(tar(("a.png", b"x"))), code=2)
    assert done.stderr.startswith("cvcli: -: is compressed\ntip: ")


def test_dry_run_to_stdout_is_json_and_not_a_tar(here):
    done = cvcli(*FLIP, "--dry-run", "-r", "in", "-")
    assert done.stdout.startswith(b"{") and b'"output": "x/c.png"' in done.stdout


def test_a_pipe_that_stays_open_can_be_interrupted(here):
    process = subprocess.Popen(
        [*MODULE, *FLIP, "-q", "-", "out"],
        env=environment(),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    data = tar(("a.png", Path("in/a.png").read_bytes()))
    process.stdin.write(data[: data.index(b"IEND") + 600])
    process.stdin.flush()
    while not Path("out/a.png").exists():
        time.sleep(0.01)
    process.send_signal(2)
    with process:
        said = process.stderr.read()
    assert process.returncode == 130 and b"interrupted" in said and b"Fatal" not in said
