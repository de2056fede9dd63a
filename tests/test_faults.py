"""A kernel or a stage that fails: the images it ran for fail by name, and the run ends."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import noise
from PIL import Image

import cvcli
from cvcli.batch import flight
from cvcli.batch.device import DeviceStage
from cvcli.batch.flight import Flights
from cvcli.batch.plan import make_plan
from cvcli.batch.report import Report
from cvcli.batch.run import Options, run
from cvcli.core.engine import engine_of
from cvcli.core.stream import Stream
from cvcli.devices import open_device
from cvcli.devices.cpu import CpuDevice
from cvcli.errors import DeviceError
from cvcli.ops import parse_chain

FLIP = parse_chain("flip --axis -1")


@pytest.fixture(autouse=True)
def _settled():
    """What fails here stays with its streams until the device is waited for."""
    yield
    for _ in range(100):
        try:
            open_device("cpu").synchronize()
        except DeviceError:
            continue
        return


@pytest.fixture
def failing(monkeypatch):
    """Make the first kernel fail."""
    calls, real = [], CpuDevice._run

    def run_or_fail(self, launch, block):
        calls.append(launch)
        if len(calls) == 1:
            raise RuntimeError("can't start new thread")
        real(self, launch, block)

    monkeypatch.setattr(CpuDevice, "_run", run_or_fail)


def driven():
    device = open_device("cpu")
    return Stream._wrap(device, device.create_driven_stream())


@pytest.mark.parametrize("make", (lambda: Stream("cpu"), driven), ids=("own thread", "driven"))
def test_a_failed_kernel_is_told_by_all_that_wait_for_it(failing, make):
    stream, x = make(), noise((9, 7, 3), "uint8")
    bad = cvcli.flip(cvcli.as_tensor(x), -1, stream=stream)
    event = stream.record()
    with pytest.raises(DeviceError, match="can't start new thread"):
        event.sync()
    with pytest.raises(DeviceError, match="can't start new thread"):
        bad.numpy(stream)
    with pytest.raises(DeviceError, match="can't start new thread"):
        stream.sync()
    good = cvcli.flip(cvcli.as_tensor(x), -1, stream=stream)
    assert (good.numpy(stream) == x[::-1, ::-1]).all()


def test_what_reads_a_failed_result_on_another_stream_fails_too(failing):
    one, other = Stream("cpu"), Stream("cpu")
    x = cvcli.flip(cvcli.as_tensor(noise((9, 7, 3), "uint8")), -1, stream=one)
    with pytest.raises(DeviceError, match="can't start new thread"):
        cvcli.flip(x, -1, stream=other).numpy(other)


@pytest.fixture
def folder(tmp_path):
    for i in range(6):
        Image.fromarray(noise((20, 30, 3), "uint8", i)).save(tmp_path / f"{i}.png")
    return tmp_path


def half_turned(folder, **options):
    plan = make_plan([folder], folder / "out")
    report = Report(plan)
    run(plan, FLIP, Options(device="cpu", jobs=1, **options), report)
    return report


@pytest.mark.parametrize("queued", (False, True), ids=("by the worker", "by the launcher"))
def test_a_failed_batch_fails_its_images_and_no_others(folder, failing, monkeypatch, queued):
    if queued:
        monkeypatch.setattr(DeviceStage, "ready", lambda self: None)
    report = half_turned(folder, batch_size=2)
    assert (report.images, report.failed) == (4, 2)
    assert all("can't start new thread" in str(row.error) for row in report.failures)
    for row in report.rows:
        if row.status == "ok":
            wanted = noise((20, 30, 3), "uint8", row.index)[::-1, ::-1]
            assert (np.asarray(Image.open(row.output)) == wanted).all()
        else:
            assert not row.output.exists()


@pytest.mark.parametrize(("owner", "where"), ((Flights, "land"), (flight, "_run")))
def test_a_stage_that_breaks_ends_the_run(folder, monkeypatch, owner, where):
    def broken(*_):
        raise RuntimeError("broken")

    monkeypatch.setattr(owner, where, broken)
    monkeypatch.setattr(DeviceStage, "ready", lambda self: None)
    with pytest.raises(RuntimeError, match="broken"):
        half_turned(folder)


def test_a_run_leaves_no_streams_behind(folder):
    half_turned(folder)
    before = len(engine_of("cpu").device._streams)
    (folder / "out").rename(folder.parent / "elsewhere")
    half_turned(folder)
    assert len(engine_of("cpu").device._streams) <= before
