"""The benchmark of whole runs: it runs, counts only results that are right, and draws its plot."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from conftest import ROOT
from PIL import Image

HERE = ROOT / "tests" / "benchmarks"


@pytest.fixture
def benchmarks(monkeypatch):
    """The folder's modules can be imported, as when it is run."""
    monkeypatch.syspath_prepend(str(HERE))
    yield
    for name in ("check", "figure", "images", "jobs", "measure", "peers", "tools"):
        sys.modules.pop(name, None)


def test_tools_take_turns_on_the_same_files(tmp_path, benchmarks):
    figures = tmp_path / "figures.json"
    command = [sys.executable, HERE, "--scale", "0.005", "--rounds", "2"]
    command += ["--job", "png", "--job", "tiny", "--tool", "Pillow", "--no-gpu", "--json", figures]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(figures.read_text())
    for name, count in (("png", 2), ("tiny", 5)):
        job = result["jobs"][name]
        assert job["count"] == count and [*job["tools"]] == ["cvcli", "Pillow"]
        ours, theirs = job["tools"].values()
        assert ours["ratio"] == {"median": 1, "min": 1, "max": 1}
        least, most = theirs["seconds"]["min"], theirs["seconds"]["max"]
        assert 0 < least / ours["seconds"]["max"] <= theirs["ratio"]["median"]
        assert theirs["ratio"]["median"] <= most / ours["seconds"]["min"]
        assert f"## {name}: {count} images" in done.stdout
    import figure

    figure.draw(result, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size < 100_000
    with Image.open(tmp_path / "plot.png") as picture:
        assert picture.width > 400 and len(picture.getcolors(256)) > 4


def test_each_job_of_ours_passes_its_check_and_the_sources_do_not(tmp_path, benchmarks):
    import check
    import images
    from jobs import JOBS
    from tools import _cvcli

    for job in JOBS.values():
        source, out = tmp_path / job.kind, tmp_path / f"{job.name}-out"
        images.make(source, 2, job.kind)
        _cvcli("cpu", "cpu", job, source, out, 2)
        assert check.trouble(job, source, out) is None
        assert check.trouble(job, source, source) is not None
        next(out.iterdir()).unlink()
        assert check.trouble(job, source, out) == "wrote 1 of 2 images"


def test_a_turned_picture_of_the_right_size_is_told_from_the_source(tmp_path, benchmarks):
    import check
    import images
    from jobs import JOBS

    images.make(tmp_path / "in", 2, "icons")
    assert "another picture" in str(check.trouble(JOBS["png"], tmp_path / "in", tmp_path / "in"))
