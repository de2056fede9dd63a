"""A device without room for a batch: halves, then single images, and only what can't be is lost."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import noise
from PIL import Image

from cvcli.batch.plan import make_plan
from cvcli.batch.report import Report
from cvcli.batch.run import Options, run
from cvcli.core.engine import Engine
from cvcli.errors import OutOfMemoryError
from cvcli.ops import parse_chain


@pytest.fixture
def folder(tmp_path):
    for i in range(7):
        Image.fromarray(noise((40, 50, 3), "uint8", i)).save(tmp_path / f"{i}.png")
    Image.fromarray(noise((400, 500, 3), "uint8", 9)).save(tmp_path / "large.png")
    return tmp_path


def flipped(folder, monkeypatch, most):
    asked, allocate = [], Engine.allocate

    def narrow(self, nbytes):
        asked.append(nbytes)
        if nbytes > most:
            raise OutOfMemoryError(f"no room for {nbytes} bytes")
        return allocate(self, nbytes)

    monkeypatch.setattr(Engine, "allocate", narrow)
    plan = make_plan([folder], folder / "out")
    report = Report(plan)
    run(plan, parse_chain("flip --axis -1"), Options(device="cpu", jobs=1), report)
    return report, asked


def test_a_batch_that_does_not_fit_is_run_in_parts(folder, monkeypatch):
    report, asked = flipped(folder, monkeypatch, most=3 * 40 * 50 * 3)
    assert report.images == 7 and max(asked) > 3 * 40 * 50 * 3
    for i in range(7):
        out = np.asarray(Image.open(folder / "out" / f"{i}.png"))
        assert (out == noise((40, 50, 3), "uint8", i)[::-1, ::-1]).all()


def test_an_image_that_does_not_fit_alone_fails_alone(folder, monkeypatch):
    report, _ = flipped(folder, monkeypatch, most=3 * 40 * 50 * 3)
    (row,) = report.failures
    assert row.input.name == "large.png" and "no room for 600000 bytes" in str(row.error)
    assert not (folder / "out" / "large.png").exists()
