"""Files in stores: what is done there is what is done on a disk, and nothing is lost either."""

import errno
import io
import json
import os
import subprocess
import sys
import tarfile
import threading
from datetime import UTC, datetime, timedelta
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest
from conftest import fresh_python, noise
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations
from fsspec.spec import AbstractFileSystem
from test_cli import FLIP, contents, environment, files_in, save

from cvcli.batch import files, places, storage
from cvcli.batch.places import Url, below, joined, place
from cvcli.batch.storage import storage_of
from cvcli.batch.stores import moment_of
from cvcli.cli.app import run_app
from cvcli.errors import ImageError

NAMES = ("a.png", "b.jpg", "sub/a.png", "sub/deep/c.webp", "sub/.hidden/d.png", "notes.txt")


class Disk(LocalFileSystem):
    """A server of files, as far as cvcli can tell: names can be changed there."""

    protocol = "disk"

    @classmethod
    def _strip_protocol(cls, path):
        return super()._strip_protocol(str(path).removeprefix("disk://"))


class Full(Disk):
    """One with no room left, as is noticed half-way."""

    protocol = "full"

    @classmethod
    def _strip_protocol(cls, path):
        return Disk._strip_protocol(str(path).removeprefix("full://"))

    def pipe_file(self, path, value, mode="overwrite", **kwargs):
        Path(path).write_bytes(value[: len(value) // 2])
        raise OSError(errno.ENOSPC, "No space left on device")


class Plain(Full):
    """One that knows no more than opening, writing and closing, and breaks off."""

    protocol = "plain"
    mv = AbstractFileSystem.mv
    pipe_file = AbstractFileSystem.pipe_file
    broken = False

    @classmethod
    def _strip_protocol(cls, path):
        return Disk._strip_protocol(str(path).removeprefix("plain://"))

    def _open(self, path, mode="rb", **kwargs):
        file = super()._open(path, mode, **kwargs)
        if "w" in mode and self.broken:
            file.write(b"half")
            file.close()
            raise OSError("the connection broke")
        return file


for kind in (Disk, Full, Plain):
    fsspec.register_implementation(kind.protocol, kind)


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    yield system
    MemoryFileSystem.store.clear()


@pytest.fixture
def here(tmp_path, monkeypatch, memory):
    """The same files in a folder and in memory."""
    monkeypatch.chdir(tmp_path)
    for number, name in enumerate(NAMES):
        if name.endswith(".txt"):
            (tmp_path / "in" / name).write_text("no image")
        else:
            save(tmp_path / "in" / name, noise((12, 20 + number, 3), "uint8", number))
        memory.pipe_file(f"/in/{name}", (tmp_path / "in" / name).read_bytes())
    return tmp_path


def run(*words, code=0):
    assert run_app([*map(str, words)]) == code


def stored(memory, folder):
    return {
        path.removeprefix(f"/{folder}/"): bytes(memory.cat_file(path))
        for path in memory.find(f"/{folder}")
    }


@pytest.mark.parametrize(
    "options",
    (
        [],
        ["-r"],
        ["-r", "--hidden"],
        ["-r", "--include", "*.png"],
        ["-r", "--exclude", "deep", "--exclude", "b.*"],
        ["-r", "--format", "png", "--name", "{parent}-{stem}-{width}-{index:03}.{ext}"],
    ),
)
def test_a_store_is_walked_and_mirrored_as_a_folder_is(here, memory, options):
    run(*FLIP, "in", "out", "-q", *options)
    run(*FLIP, "memory://in", "memory://out", "-q", *options)
    wanted = contents(here / "out")
    assert stored(memory, "out") == wanted and wanted
    run(*FLIP, "memory://in", "down", "-q", *options)
    run(*FLIP, "in", "memory://up", "-q", *options)
    assert contents(here / "down") == stored(memory, "up") == wanted
    run(*FLIP, f"disk://{here}/in", f"disk://{here}/disk", "-q", *options)
    assert contents(here / "disk") == wanted


def test_patterns_lists_and_bases(here, memory):
    run(*FLIP, "memory://in/**/a.png", "memory://out", "-q")
    assert set(stored(memory, "out")) == {"a.png", "sub/a.png"}
    (here / "list").write_text("memory://in/sub/a.png\nmemory://in/b.jpg\n")
    run(*FLIP, "--files-from", "list", "--base", "memory://in", "memory://more", "-q")
    assert set(stored(memory, "more")) == {"b.jpg", "sub/a.png"}
    run(*FLIP, "--files-from", "list", "--base", "in", "memory://none", "-q", code=2)
    memory.pipe_file("/list", (here / "list").read_bytes())
    run(*FLIP, "--files-from", "memory://list", "memory://far", "-q")
    assert set(stored(memory, "far")) == {"b.jpg", "a.png"}
    run(*FLIP, "--files-from", "memory://none", "memory://far", "-q", code=2)
    run(*FLIP, "memory://in/b.jpg", "memory://one/turned.png", "-q")
    assert set(stored(memory, "one")) == {"turned.png"}


def test_outputs_that_exist(here, memory, capfd):
    flip = (*FLIP, "-r", "memory://in", "memory://out", "-q")
    run(*flip)
    before = stored(memory, "out")
    run(*flip, code=1)
    assert "memory://out/a.png: output exists" in capfd.readouterr().err
    memory.pipe_file("/out/a.png", b"mine")
    memory.rm_file("/out/b.jpg")
    run(*flip, "--skip-existing")
    assert stored(memory, "out") == before | {"a.png": b"mine"}
    run(*flip, "--check", code=1)
    assert "memory://out/a.png: can't be compared" in capfd.readouterr().err
    run(*flip, "--overwrite")
    assert stored(memory, "out") == before
    run(*flip, "--check")


def test_what_was_seen_before_is_forgotten(here, memory):
    """Runs in one process: the first has seen a folder that is a file for the second."""
    for index in range(20):
        memory.pipe_file(f"/many/{index}.png", memory.cat_file("/in/a.png"))
    run("invert", "memory://many", "memory://out", "-q")
    run("invert", "memory://many", "memory://out", "-q", "--skip-existing")
    memory.rm("/out", recursive=True)
    run("invert", "in/a.png", "memory://out", "-q", "--format", "png")
    assert set(stored(memory, "out")) == {"a.png"}
    memory.rm("/many", recursive=True)
    run("invert", "memory://many", "memory://more", "-q", code=66)


def test_only_what_is_newer_is_done(here, memory):
    flip = (*FLIP, "memory://in", "memory://out", "--if-newer", "-q")
    run(*flip)
    for path in memory.find("/out"):
        memory.pipe_file(path, b"kept")
    memory.store["/in/a.png"].created = datetime.now(UTC) + timedelta(seconds=5)
    run(*flip)
    kept = [name for name, data in stored(memory, "out").items() if data == b"kept"]
    assert kept == ["b.jpg"]


def test_what_would_lose_a_file_is_refused(here, memory, capfd):
    before = dict(memory.store)
    for output in ("memory://in", "memory:///in/", "memory://in/sub/.."):
        words = ("memory://in/a.png", "memory://in/sub/a.png")
        run("invert", *words, output, "--overwrite", code=2)
        assert "two inputs would write it" in capfd.readouterr().err
    for output in ("memory://in", "memory:///in/"):
        run("invert", "memory://in", output, "--overwrite", code=2)
        assert "input would be overwritten" in capfd.readouterr().err
    run("invert", "--in-place", "memory://in", code=2)
    assert "--in-place: memory://in is not on this machine" in capfd.readouterr().err
    run("invert", "memory://in", "out", "--report", "memory://in/notes.json", "--dry-run")
    run("invert", "memory://in", "out", "--report", "memory://in/a.json/r.txt", code=2)
    run("invert", "memory://none", "memory://none/*.png", "out", code=66)
    assert dict(memory.store) == before and not (here / "out").exists()


def test_file_addresses_are_paths(here, capfd):
    run("invert", "in", f"file://{here}/in", "--overwrite", code=2)
    assert "input would be overwritten" in capfd.readouterr().err
    run("invert", f"file://{here}/in/a.png", "file://localhost" + str(here / "o.png"), "-q")
    assert (here / "o.png").exists()
    assert place("file:///a%20b/c.png") == Path("/a b/c.png")


def test_a_dry_run_and_reports(here, memory, capfd):
    run("invert", "memory://in", "memory://out", "--dry-run")
    rows = json.loads(capfd.readouterr().out)["images"]
    assert [row["output"] for row in rows] == ["memory://out/a.png", "memory://out/b.jpg"]
    assert memory.find("/out") == []
    for i in (1, 2):
        report = ("--report", "memory://reports/r.json", "--shard", f"{i}/2")
        run("invert", "memory://in", "memory://out", "-q", *report)
    parts = [f"memory://reports/r-{i}-of-2.json" for i in (1, 2)]
    run("report", "merge", *parts, "memory://reports/all.html", "-q")
    page = memory.cat_file("/reports/all.html").decode()
    assert page.count("data:image") == 4 and "memory://in/a.png" in page


def test_a_tar_is_unpacked_into_a_store(here):
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        tar.add("in/a.png")
        tar.add("in/sub/a.png")
    code = "import fsspec; from cvcli.cli.app import run_app\n"
    code += "assert run_app(['invert', '-', 'memory://out', '-q']) == 0\n"
    code += "print(fsspec.filesystem('memory').find('/out'))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=data.getvalue(),
        stdout=subprocess.PIPE,
        env=environment(PYTHONPATH=os.pathsep.join(sys.path)),
        check=True,
    )
    assert eval(done.stdout) == ["/out/in/a.png", "/out/in/sub/a.png"]


def test_a_failed_upload_leaves_nothing(here, capfd):
    run(*FLIP, "-r", "in", f"full://{here}/out", "-q", code=1)
    assert "a.png: no space left on device" in capfd.readouterr().err
    assert files_in(here / "out") == []


def test_a_failed_upload_leaves_what_was_there(here):
    address = f"full://{here}/in"
    before = contents(here / "in")
    with pytest.raises(ImageError, match="no space left"):
        storage_of(address).write(Url(f"{address}/a.png"), b"new", overwrite=True)
    assert contents(here / "in") == before


@pytest.mark.parametrize("overwrite", (False, True))
def test_an_object_that_breaks_off_is_removed(here, monkeypatch, overwrite):
    target = Url(f"plain://{here}/in/new.png")
    monkeypatch.setattr(Plain, "broken", True)
    with pytest.raises(ImageError, match="the connection broke"):
        storage_of(target).write(target, b"new", overwrite=overwrite)
    assert not (here / "in" / "new.png").exists()
    monkeypatch.setattr(Plain, "broken", False)
    storage_of(target).write(target, b"new", overwrite=overwrite)
    with pytest.raises(ImageError, match="output exists"):
        storage_of(target).write(target, b"other", overwrite=False)
    assert (here / "in" / "new.png").read_bytes() == b"new"


@pytest.mark.parametrize("scheme", ("memory", "disk"))
def test_a_file_that_appeared_meanwhile_stays(here, scheme):
    target = Url(f"{scheme}://{here}/x/y.png")
    storage_of(target).write(target, b"first", overwrite=False)
    with pytest.raises(ImageError, match="output exists"):
        storage_of(target).write(target, b"second", overwrite=False)
    assert storage_of(target).read(target)[0] == b"first"
    storage_of(target).write(target, b"third", overwrite=True)
    assert storage_of(target).read(target)[0] == b"third"
    if scheme == "disk":
        assert files_in(here / "x") == ["y.png"]


def test_what_dead_processes_left_is_swept(here):
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], stdout=-1)
    name = files.temporary_name().replace(str(os.getpid()), str(int(dead.stdout)), 1)
    (here / "out").mkdir()
    (here / "out" / name).write_bytes(b"half")
    own = here / "out" / files.temporary_name()
    own.write_bytes(b"being written")
    run(*FLIP, "in", f"disk://{here}/out", "-q")
    assert files_in(here / "out") == sorted([own.name, "a.png", "b.jpg"])


def test_keys_that_lead_out_of_the_output_are_refused(here, memory, capfd):
    memory.store["/in/sub/.."] = memory.store["/in/a.png"]
    run("invert", "-r", "memory://in", "down", "-q", "--hidden", code=1)
    assert "its name can't be mirrored" in capfd.readouterr().err
    assert "sub/a.png" in files_in(here / "down")


def test_what_is_not_installed_is_told(here, monkeypatch, capfd):
    known = {"class": "nosuchstore.System", "err": "Install it"}
    monkeypatch.setitem(known_implementations, "gone", known)
    run("invert", "gone://in", "out", code=2)
    text = capfd.readouterr().err
    assert "gone://in: nosuchstore is not installed, which gone:// needs" in text
    assert "tip: pip install nosuchstore" in text
    run("invert", "nonsense://in", "out", code=2)
    assert "nonsense://in: nonsense:// is not known" in capfd.readouterr().err
    monkeypatch.setattr(storage, "_REMOTE", {})
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    run("invert", "memory://in", "out", code=2)
    assert "tip: pip install 'cvcli[remote]'" in capfd.readouterr().err


def test_local_runs_leave_fsspec_and_dask_out(here):
    code = "import sys; from cvcli.cli.app import run_app\n"
    code += "assert run_app(['invert', 'in', 'out', '-q', '--report', 'r.html']) == 0\n"
    code += "print({'fsspec', 'distributed', 'dask'} & set(sys.modules))"
    assert fresh_python(code, PYTHONPATH=os.pathsep.join(sys.path)).strip() == "set()"


@pytest.fixture
def server(here):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    own = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(here)))
    thread = threading.Thread(target=own.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{own.server_port}"
    own.shutdown()
    own.server_close()
    thread.join()


def test_files_of_the_web_are_read(here, server, capfd):
    run(*FLIP, "in/a.png", "in/b.jpg", "one", "-q")
    run(*FLIP, f"{server}/in/a.png?size=[1]", f"{server}/in/b.jpg", "web", "-q")
    assert contents(here / "web") == contents(here / "one")
    run(*FLIP, f"{server}/in/none.png", f"{server}/in/a.png", "more", "-q", code=1)
    assert f"{server}/in/none.png: no such file" in capfd.readouterr().err
    run(*FLIP, "in", f"{server}/out", code=2)
    assert "nothing can be written to the web" in capfd.readouterr().err


def test_places_are_told_apart():
    url = place("s3://bucket/a//b.tar.png")
    assert isinstance(url, Url) and str(url) == os.fspath(url) == "s3://bucket/a//b.tar.png"
    assert (url.name, url.stem, url.suffix) == ("b.tar.png", "b.tar", ".png")
    assert str(url.parent) == "s3://bucket/a/" and str(url.with_name("c")) == "s3://bucket/a//c"
    assert place("https://h/a.jpg?x=1/2#y").name == "a.jpg"
    assert place("a:b/c") == Path("a:b/c") and place("1://x") == Path("1://x")
    assert joined("s3://b/", "x/y") == "s3://b/x/y" and joined("", "x") == "x"
    assert below("s3://b/x/y.png", "s3://b/x/") == "y.png"
    assert below("s3://b/xy.png", "s3://b/x") is None
    assert below("s3://b/x", "b") is below("x", "s3://b") is None
    assert places.parent_of("s3://bucket") == "s3://bucket"


def test_when_a_file_was_changed_in_the_words_of_each_store():
    moment = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    wanted = int(moment.timestamp()) * 10**9
    for info in (
        {"LastModified": moment},
        {"mtime": moment.timestamp(), "created": 5.0},
        {"updated": "2026-01-02T03:04:05.000Z"},
        {"last_modified": moment.replace(tzinfo=None)},
    ):
        assert moment_of(info) == wanted
    assert moment_of({"size": 5, "updated": "soon"}) is None


def test_a_store_that_does_not_answer_is_told(here, monkeypatch, capfd):
    def refuse(self, path, **more):
        raise RuntimeError("no credentials\nat all")

    monkeypatch.setattr(MemoryFileSystem, "info", refuse)
    run("invert", "memory://in", "down", code=1)
    assert "cvcli: memory://in: no credentials\n" in capfd.readouterr().err
    run("invert", "in/a.png", "memory://out", code=1)
    assert "cvcli: memory://out/a.png: no credentials\n" in capfd.readouterr().err
