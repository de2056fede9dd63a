"""The page of a run as a browser shows it. Without one on the machine there is nothing to see."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pytest
from conftest import noise
from PIL import Image

from cvcli.cli.app import run_app

BROWSER = next(
    filter(
        None,
        map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome", "chrome")),
    ),
    None,
)
WIDTH, HEIGHT = 1000, 2400

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no browser is installed")


@pytest.fixture
def page(tmp_path, monkeypatch):
    """The report of a run of three images, of which one fails."""
    (tmp_path / "in").mkdir()
    pixels = np.repeat(np.repeat(noise((75, 100, 3), "uint8"), 4, 0), 4, 1)
    for number in range(2):
        Image.fromarray(pixels).save(tmp_path / "in" / f"{number}.jpg")
    (tmp_path / "in" / "2.jpg").write_bytes(b"\xff\xd8\xff no image")
    monkeypatch.chdir(tmp_path)
    chain = "resize 50% | gaussian --size 9 --sigma 3"
    assert run_app(["run", chain, "in", "out", "--report", "run.html", "-q", "-j", "1"]) == 1
    return tmp_path / "run.html"


def seen(page, *options):
    """Screenshot as an array, and what the browser complains of."""
    shot = page.with_suffix(".png")
    done = subprocess.run(
        [
            *(BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr"),
            *(f"--window-size={WIDTH},{HEIGHT}", f"--screenshot={shot}", *options, page.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    with Image.open(shot) as picture:
        return np.asarray(picture.convert("RGB")), re.findall(r"CONSOLE.*", done.stderr)


def test_stages_charts_and_thumbnails_are_drawn(page):
    shot, complaints = seen(page)
    assert complaints == []
    text = page.read_text("utf-8")
    stages = text[text.index("Where the time went") : text.index("Timeline")]
    colours = set(re.findall(r"#[0-9a-fA-F]{6}", stages))
    assert len(colours) >= 4
    drawn = np.zeros(shot.shape[:2], bool)
    for colour in colours:
        area = (shot == [int(colour[i : i + 2], 16) for i in (1, 3, 5)]).all(axis=2)
        assert area.sum() > 60, colour
        drawn |= area
    # Of stages, charts and bars of images; without one of them there are fewer bands of colour.
    rows = np.flatnonzero(drawn.any(axis=1))
    assert 1 + (np.diff(rows) > 12).sum() >= len(colours) + 6
    # Thumbnails of noise: colours that nothing else on the page has.
    assert len(np.unique(shot.reshape(-1, 3), axis=0)) > 2000
    # Its text goes on behind the first screen of a laptop, and its margins stay free.
    assert (shot[900:] < 128).any() and (shot[:, :10] == shot[0, 0]).all()


def test_nothing_is_fetched_from_elsewhere(page):
    text = page.read_text("utf-8")
    assert not re.search(r"""(src|href)\s*=\s*["'](?!data:|#)""", text)
    assert "url(" not in text and "@import" not in text and "<script src" not in text
