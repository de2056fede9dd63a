"""Files of several pictures where stores, shares of a plan and many workers come in."""

import json
import pickle
from pathlib import Path

import pytest
from clusters import Cluster
from conftest import noise
from PIL import Image
from test_cli import FLIP, contents, files_in, save
from test_frames import animated
from test_remote import Disk, memory, run, stored  # noqa: F401 (a fixture)

from cvcli.batch.places import Url
from cvcli.batch.plan import Job
from cvcli.batch.sinks import FileSink
from cvcli.batch.storage import storage_of
from cvcli.errors import ImageError

NAMES = [f"a-{number:03}.bmp" for number in range(4)]
OUTPUTS = (b"one", b"two", b"three")


@pytest.fixture
def here(tmp_path, monkeypatch, memory):  # noqa: F811
    """An animation between other images, in a folder and in memory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.gif").write_bytes(animated("GIF"))
    for number in range(5):
        save(tmp_path / "in" / f"{number}.png", noise((9, 7 + number, 3), "uint8", number))
    for path in (tmp_path / "in").iterdir():
        memory.pipe_file(f"/in/{path.name}", path.read_bytes())
    return tmp_path


def job_of(folder):
    first, *more = (Url(f"{folder}/{number}.png") for number in range(3))
    return Job(0, Path("a.gif"), first, None, tuple(more))


def put(sink, job, files=OUTPUTS):
    sink.put(job, [(file,) for file in files], None)


def rows_of(name):
    return json.loads(Path(name).read_text())["images"]


@pytest.mark.parametrize("words", ([], ["--name", "{stem}/{frame:02}-{width}.{ext}"]))
def test_pictures_go_to_a_store_as_to_a_folder(here, memory, words):  # noqa: F811
    words = ["-q", "--format", "bmp", *words]
    run(*FLIP, "in", "out", *words)
    run(*FLIP, "memory://in", "memory://out", *words)
    run(*FLIP, "memory://in", f"disk://{here}/disk", *words)
    wanted = contents(here / "out")
    assert len(wanted) == 9
    assert stored(memory, "out") == contents(here / "disk") == wanted


def test_one_name_in_a_store_is_that_of_all(here, memory):  # noqa: F811
    run(*FLIP, "memory://in/a.gif", "memory://one/b.bmp", "-q")
    run(*FLIP, "in/a.gif", f"file://{here}/one/b.bmp", "-q")
    assert sorted(stored(memory, "one")) == [f"b-{number:03}.bmp" for number in range(4)]
    assert stored(memory, "one") == contents(here / "one")


def test_all_outputs_in_a_store_are_looked_at(here, memory, capfd):  # noqa: F811
    flip = (*FLIP, "memory://in/a.gif", "memory://out", "--format", "bmp", "-q")
    run(*flip)
    before = stored(memory, "out")
    memory.rm_file("/out/a-002.bmp")
    memory.pipe_file("/out/a-001.bmp", b"mine")
    run(*flip, "--check", code=1)
    assert "memory://out/a-002.bmp: output is missing" in capfd.readouterr().err
    run(*flip, code=1)
    assert "memory://out/a-000.bmp: output exists" in capfd.readouterr().err
    run(*flip, "--skip-existing")
    assert stored(memory, "out") == before | {"a-001.bmp": b"mine"}
    memory.rm_file("/out/a-003.bmp")
    run(*flip, "--if-newer")
    assert stored(memory, "out") == before
    memory.pipe_file("/in/a-002.bmp", memory.cat_file("/out/a-002.bmp"))
    run(*FLIP, "memory://in", "memory://new", "--format", "bmp", code=2)
    assert "memory://new/a-002.bmp: two inputs would write it" in capfd.readouterr().err
    run(*FLIP, "memory://in/a.gif", "memory://out/a-002.bmp", "memory://out", "--overwrite", code=2)


@pytest.mark.parametrize("overwrite", (False, True))
def test_what_a_store_does_not_take_as_a_whole_it_does_not_keep(here, monkeypatch, overwrite):
    """The third of three fails: the new ones are taken away, and none that was there."""

    def pipe_file(self, path, value, **kwargs):
        if value == OUTPUTS[2]:
            raise OSError("the connection broke")
        return type(self).__base__.pipe_file(self, path, value, **kwargs)

    monkeypatch.setattr(Disk, "pipe_file", pipe_file)
    if overwrite:
        save(here / "out" / "1.png", noise((4, 4, 3), "uint8"))
    with pytest.raises(ImageError, match="the connection broke"):
        put(FileSink(overwrite=overwrite), job_of(f"disk://{here}/out"))
    assert files_in(here / "out") == (["1.png"] if overwrite else [])


@pytest.mark.parametrize("scheme", ("memory", "disk", "file"))
def test_work_that_ended_half_way_is_done_again(here, scheme):
    """Some outputs are there, put by a worker that died: the others join them."""
    sink = pickle.loads(pickle.dumps(FileSink().repeatable()))
    job = job_of(f"{scheme}://{here}/out")
    storage_of(job.more[0]).write(job.more[0], OUTPUTS[1], overwrite=False)
    for _ in range(2):
        put(sink, job)
        assert tuple(storage_of(one).read(one)[0] for one in job.outputs) == OUTPUTS
    with pytest.raises(ImageError, match="output exists"):
        put(sink, job, (b"one", b"two", b"other"))
    assert storage_of(job.more[1]).read(job.more[1])[0] == OUTPUTS[2]


def test_shares_have_the_pictures_of_their_files(here):
    words = ("--format", "bmp", "-q", "--report")
    run(*FLIP, "in", "whole", *words, "whole.json")
    for number in (1, 2, 3):
        run(*FLIP, "in", "parts", *words, "r.json", "--shard", f"{number}/3")
    run("report", "merge", *here.glob("r-*.json"), "merged.json", "-q")
    assert contents(here / "parts") == contents(here / "whole")
    one, merged = (json.loads(Path(f"{name}.json").read_text()) for name in ("whole", "merged"))
    assert one["totals"]["outputs"] == merged["totals"]["outputs"] == 9
    (row,) = (row for row in merged["images"] if row["outputs"])
    assert row["outputs"] == [f"parts/{name}" for name in NAMES]
    run("report", "merge", *here.glob("r-*.json"), "merged.csv", "-q")
    assert "; ".join(row["outputs"]) in Path("merged.csv").read_text()


def test_workers_do_pictures_and_heed_what_is_new(here, monkeypatch):
    """Numbered files, one frame, lossless JPEG and small decoding, as in a run of one process."""
    image = Image.fromarray(noise((256, 320, 3), "uint8") & 0xC0)
    image.save(here / "in" / "b.jpg", quality=90)
    (here / "in" / "c.gif").write_bytes(b"GIF89a broken")
    monkeypatch.chdir(here.parent)  # workers are elsewhere
    own = Cluster(1)
    monkeypatch.chdir(here)
    cases = {
        "numbered": (*FLIP, "in", "--format", "bmp", "--quality", "90"),
        "frame": (*FLIP, "in/a.gif", "--frame", "2", "--format", "png"),
        "lossless": (*FLIP, "in/b.jpg", "--lossless"),
        "small": ("resize", "--width", "40", "in/b.jpg"),
        "exact": ("resize", "--width", "40", "in/b.jpg", "--exact"),
    }
    try:
        for name, (op, *words) in cases.items():
            code = int(name == "numbered")
            folders = [f"one/{name}", f"many/{name}"]
            reports = [f"one-{name}.json", f"many-{name}.json"]
            more = ["-q", "--threads", "1", "--report"]
            run(op, *words, folders[0], *more, reports[0], code=code)
            run(op, *words, folders[1], *more, reports[1], "--cluster", own.address, code=code)
            for row, other in zip(*map(rows_of, reports), strict=True):
                for key in ("status", "error", "tip", "notes", "bytes_out"):
                    assert row[key] == other[key]
                outputs = [one.replace("one/", "many/") for one in row["outputs"] or ()]
                assert outputs == (other["outputs"] or [])
    finally:
        own.close()
    assert contents(here / "many") == contents(here / "one")
    assert [name for name in files_in(here / "many") if "numbered/a-" in name] == [
        f"numbered/{name}" for name in NAMES
    ]
    assert not (here.parent / "many").exists()
    totals = json.loads(Path("many-numbered.json").read_text())["totals"]
    assert totals["outputs"] == 10 and totals["images"] == 7
    small, exact = (Path(f"many/{name}/b.jpg").read_bytes() for name in ("small", "exact"))
    assert small != exact
