"""What the GPU's codecs keep from image to image and from run to run, with a stand-in for them."""

from __future__ import annotations

import sys

import pytest
from fake_nvimgcodec import install
from test_nvimage import done, jpeg, notes, picture

from cvcli.batch import lanes
from cvcli.batch import run as running
from cvcli.batch.orient import oriented
from cvcli.codecs.gpu import nvimage


@pytest.fixture
def fake(monkeypatch):
    oriented.cache_clear()
    monkeypatch.setattr(running, "_MANY", 1)
    yield install(monkeypatch)[0]
    oriented.cache_clear()
    nvimage.end_idle()


@pytest.fixture
def folder(tmp_path):
    def fill(files):
        (tmp_path / "in").mkdir(exist_ok=True)
        for name, data in files.items():
            (tmp_path / "in" / name).write_bytes(data)
        return tmp_path / "in"

    return fill


def test_memory_for_files_is_used_again_once_nobody_looks_at_a_file(fake):
    rooms = nvimage._Rooms(fake.module)
    first = rooms.take([100, 100])
    first[0].name, first[1].name = "looked at", "free"
    part = memoryview(first[0])[:0]
    del first
    second = rooms.take([90, 100])
    assert [getattr(room, "name", "new") for room in second] == ["free", "new"]
    part.release()
    del second
    assert [getattr(room, "name", "new") for room in rooms.take([200, 80])] == ["new", "free"]
    assert fake.rooms == 4


def test_runs_use_memory_for_files_again(fake, folder):
    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(90)})
    report = done(source, batch_size=1, max_memory=100_000, jobs=1)
    assert (report.images, sum(fake.encoded)) == (90, 90)
    assert fake.rooms <= 30


def test_threads_take_turns_as_before_once_the_run_is_over(fake, folder):
    before = sys.getswitchinterval()
    seen = []
    fake.spoil_decoding = lambda count: seen.append(sys.getswitchinterval())
    done(folder({"a.jpg": jpeg(picture())}))
    assert seen == [pytest.approx(lanes._SWITCH_S)]
    assert sys.getswitchinterval() == before


def test_later_runs_take_the_coders_of_earlier_ones(fake, folder):
    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(6)})
    for number in range(4):
        done(source, out=f"{number}", batch_size=1)
    assert 1 <= fake.decoders <= 2 and fake.decoders == fake.encoders == len(nvimage._idle)


def test_coders_that_failed_are_not_used_again(fake, folder):
    def out_of_order(count):
        raise RuntimeError("an illegal memory access")

    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(4)})
    fake.spoil_decoding = out_of_order
    assert done(source).images == 4
    assert not any(coder.failed for coder in nvimage._idle) and fake.decoders > len(nvimage._idle)
    fake.spoil_decoding = lambda count: None
    assert notes(done(source, out="again")) == []
