"""Outputs are complete or absent, whatever happens while they are written."""

# ruff: noqa: PTH208

import errno
import io
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cvcli.batch import files
from cvcli.batch.files import input_trouble, read_file, remove_stale, write_atomic
from cvcli.errors import ImageError

DATA = b"new" * 1000


def refused(path: Path, data: bytes = DATA, *, overwrite: bool = True) -> ImageError:
    """The one-line error of a write that must leave the folder as it was."""
    before = contents(path.parent)
    with pytest.raises(ImageError) as caught:
        write_atomic(path, data, overwrite=overwrite)
    assert contents(path.parent) == before
    assert "\n" not in str(caught.value) and str(caught.value).startswith(f"{path}: ")
    return caught.value


def contents(folder: Path) -> dict[str, bytes | None]:
    if not folder.is_dir():
        return {}
    return {p.name: p.read_bytes() if p.is_file() else None for p in folder.iterdir()}


def python(code: str, *arguments: object) -> subprocess.Popen[bytes]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


def finished_pid() -> int:
    process = python("")
    process.communicate()
    return process.pid


@given(data=st.binary(min_size=1), overwrite=st.booleans())
def test_round_trip(tmp_path_factory, data, overwrite):
    path = tmp_path_factory.mktemp("trip") / "new" / "a.jpg"
    write_atomic(path, (data[:3], memoryview(data)[3:]), overwrite=overwrite)
    assert read_file(path) == data
    assert list(contents(path.parent)) == ["a.jpg"]


def test_read_errors_are_one_line(tmp_path):
    (tmp_path / "empty.png").touch()
    for name, why in {
        "empty.png": "empty file",
        "gone.png": "no such file",
        "empty.png/x.png": "a parent of it is not a folder",
        ".": "is a directory",
    }.items():
        with pytest.raises(ImageError) as caught:
            read_file(tmp_path / name)
        assert str(caught.value) == f"{tmp_path / name}: {why}"


def test_what_can_not_be_an_input(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.png").write_bytes(b"x")
    Path("link.png").symlink_to("a.png")
    Path("broken.png").symlink_to("gone")
    Path("loop.png").symlink_to("loop.png")
    os.mkfifo("fifo.png")
    expected = {
        "a.png": None,
        "link.png": None,
        "nope.png": "no such file",
        "broken.png": "broken link",
        "loop.png": "too many levels of symbolic links",
        "fifo.png": "not a regular file",
        "socket.png": "not a regular file",
        "/dev/null": "not a regular file",
        "a.png/b.png": "a parent of it is not a folder",
        "bad\0name.png": "not a possible file name",
    }
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind("socket.png")
        assert {name: input_trouble(name) for name in expected} == expected
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.R_OK)
    assert input_trouble("a.png") == "permission denied"


def test_read_permission_denied(tmp_path, monkeypatch):
    def refuse(path, mode):
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(files, "open", refuse, raising=False)
    with pytest.raises(ImageError, match=r"a\.png: permission denied$"):
        read_file(tmp_path / "a.png")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
@pytest.mark.parametrize("overwrite", [True, False])
def test_permissions_are_those_of_any_new_file(tmp_path, mask, overwrite):
    old = os.umask(mask)
    try:
        write_atomic(tmp_path / "a.png", DATA, overwrite=overwrite)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "a.png").stat().st_mode) == 0o666 & ~mask


def test_a_replaced_file_hands_on_its_permissions(tmp_path):
    path = tmp_path / "a.png"
    path.touch()
    path.chmod(0o640)
    write_atomic(path, DATA, overwrite=True)
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (0o640, DATA)


def test_a_link_is_replaced_and_not_written_through(tmp_path):
    (tmp_path / "other").write_bytes(b"old")
    (tmp_path / "a.png").symlink_to("other")
    write_atomic(tmp_path / "a.png", DATA, overwrite=True)
    assert contents(tmp_path) == {"other": b"old", "a.png": DATA}
    assert not (tmp_path / "a.png").is_symlink()


def test_without_overwrite_an_existing_file_stays(tmp_path):
    path = tmp_path / "a.png"
    path.write_bytes(b"old")
    error = refused(path, overwrite=False)
    assert str(error).endswith("output exists") and "--overwrite" in (error.tip or "")
    (tmp_path / "b.png").symlink_to("gone")
    refused(tmp_path / "b.png", overwrite=False)
    assert (tmp_path / "b.png").is_symlink()


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS])
def test_file_systems_without_hard_links(tmp_path, monkeypatch, code):
    def no_links(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", no_links)
    write_atomic(tmp_path / "a.png", DATA, overwrite=False)
    assert contents(tmp_path) == {"a.png": DATA}
    assert str(refused(tmp_path / "a.png", b"x", overwrite=False)).endswith("output exists")


def test_a_file_that_appears_during_the_write_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.png"
    real = files._write_new

    def overtaken(*arguments):
        real(*arguments)
        path.write_bytes(b"theirs")

    monkeypatch.setattr(files, "_write_new", overtaken)
    with pytest.raises(ImageError, match="output exists"):
        write_atomic(path, DATA, overwrite=False)
    assert contents(tmp_path) == {"a.png": b"theirs"}


def half_written(error: BaseException):
    """An ``open`` whose file takes half of what it is given and then raises."""

    class Half(io.FileIO):
        def write(self, data):
            super().write(data[: len(data) // 2])
            raise error

    return Half


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "no space left on device"),
        (errno.EACCES, "permission denied"),
        (errno.EROFS, "read-only file system"),
    ],
)
def test_failing_writes_leave_the_old_file_alone(tmp_path, monkeypatch, code, words):
    (tmp_path / "a.jpg").write_bytes(b"old")

    with monkeypatch.context() as patch:
        half = half_written(OSError(code, os.strerror(code)))
        patch.setattr(files, "open", half, raising=False)
        for overwrite in (True, False):
            with pytest.raises(ImageError) as caught:
                write_atomic(tmp_path / "a.jpg", DATA, overwrite=overwrite)
            assert str(caught.value) == f"{tmp_path / 'a.jpg'}: {words}"
    assert contents(tmp_path) == {"a.jpg": b"old"}


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, MemoryError])
def test_interrupts_pass_and_leave_nothing(tmp_path, monkeypatch, kind):
    with monkeypatch.context() as patch:
        patch.setattr(files, "open", half_written(kind()), raising=False)
        with pytest.raises(kind):
            write_atomic(tmp_path / "a.jpg", DATA, overwrite=True)
    assert contents(tmp_path) == {}


def test_a_device_that_is_really_full(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(files, "open", lambda *_: io.FileIO("/dev/full", "w"), raising=False)
        with pytest.raises(ImageError, match=r"a\.jpg: no space left on device$"):
            write_atomic(tmp_path / "a.jpg", DATA, overwrite=True)
    assert contents(tmp_path) == {}


def test_a_real_limit_hit_in_the_middle_of_a_file(tmp_path):
    code = (
        "import resource, sys; from pathlib import Path; from cvcli.batch.files import *\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "try: write_atomic(Path(sys.argv[1]), bytes(1_000_000), overwrite=True)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    out, _ = python(code, tmp_path / "a.jpg").communicate()
    assert out.decode().strip() == f"ImageError {tmp_path / 'a.jpg'}: file too large"
    assert contents(tmp_path) == {}


def test_names_the_file_system_refuses(tmp_path):
    assert str(refused(tmp_path / ("n" * 300 + ".jpg"))).endswith("file name too long")
    (tmp_path / "plain").write_bytes(b"old")
    assert "not a folder" in str(refused(tmp_path / "plain" / "a.jpg"))
    assert "not a folder" in str(refused(tmp_path / "plain" / "sub" / "a.jpg"))
    (tmp_path / "folder.jpg").mkdir()
    assert str(refused(tmp_path / "folder.jpg")).endswith("is a directory")
    assert str(refused(tmp_path / "folder.jpg", overwrite=False)).endswith("output exists")


def test_names_that_are_not_utf8(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff\xfe.jpg")
    write_atomic(path, DATA, overwrite=False)
    assert os.listdir(os.fsencode(tmp_path)) == [b"\xff\xfe.jpg"]


def test_killed_in_the_middle_the_target_is_whole_and_the_rest_is_swept(tmp_path):
    target, other = tmp_path / "a.jpg", tmp_path / "b.jpg"
    target.write_bytes(b"old")
    # Writes for ever, each time all of one letter, so that a mixed or short file would show.
    code = (
        "import sys; from pathlib import Path; from cvcli.batch.files import *\n"
        "for i in range(10**9):\n"
        "    write_atomic(Path(sys.argv[1]), bytes([65 + i % 26]) * 3_000_000, overwrite=True)\n"
        "    if not i: print(flush=True)\n"
    )
    for pause in (0.0, 0.003, 0.01):
        process = python(code, target)
        process.stdout.readline()
        os.sched_yield() if not pause else signal.sigtimedwait([], pause)
        process.kill()
        process.communicate()
        data = target.read_bytes()
        assert len(data) == 3_000_000 and len(set(data)) == 1
    # One more death, at a known place: half of the bytes are on disk.
    code = (
        "import os, sys; from pathlib import Path; from cvcli.batch import files\n"
        "def half(temporary, data, mode):\n"
        "    temporary.write_bytes(data[:500]); os.kill(os.getpid(), 9)\n"
        "files._write_new = half\n"
        "files.write_atomic(Path(sys.argv[1]), bytes(1000), overwrite=False)\n"
    )
    process = python(code, other)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert not other.exists()
    left = set(contents(tmp_path)) - {"a.jpg"}
    assert any(name.startswith(f".cvcli-{process.pid}-") for name in left)
    assert remove_stale(tmp_path) == len(left)
    assert set(contents(tmp_path)) == {"a.jpg"}


def test_only_temporary_files_of_dead_processes_here_are_swept(tmp_path):
    dead, host = finished_pid(), files._HOST
    foreign = f"{(int(host, 16) + 1) % 2**32:08x}"
    keep = {
        f".cvcli-{os.getpid()}-{host}{'0' * 16}.tmp",
        f".cvcli-1-{host}{'0' * 16}.tmp",
        f".cvcli-{dead}-{foreign}{'0' * 16}.tmp",
        f".cvcli-{dead}-{host}{'0' * 16}.tmp.png",
        f"x.cvcli-{dead}-{host}{'0' * 16}.tmp",
        f".cvcli-{dead}-notes.tmp",
        ".cvcli-x-0.tmp",
        "a.tmp",
        "a.jpg",
    }
    for name in {*keep, f".cvcli-{dead}-{host}{'f' * 16}.tmp"}:
        (tmp_path / name).write_bytes(b"x")
    assert remove_stale(tmp_path) == 1
    assert set(contents(tmp_path)) == keep
    assert remove_stale(tmp_path / "gone") == 0
