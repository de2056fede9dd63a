"""``--explain``: the launches a chain becomes, and the bytes they move."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, noise
from PIL import Image
from typer.testing import CliRunner
from within import cvcli

from cvcli.cli.app import make_app
from cvcli.core.explain import explain, moved, moved_one_by_one
from cvcli.core.spec import ImageSpec
from cvcli.ops import parse_chain

SPEC = ImageSpec(1080, 1920, 3, "uint8")
FOR_A_NETWORK = (
    "flip --axis -1 | resize 224x224! --antialias off | convertto --dtype float32 | "
    "normalize --mean 0.5 --std 0.25 | reformat --layout planar"
)


@pytest.mark.parametrize(
    "text, launches",
    (
        ("flip --axis -1 | invert | crop --width 9 --height 9 | posterize --bits 3", 1),
        (FOR_A_NETWORK, 1),
        (
            "resize 50% | cvtcolor --code rgb2hsv | gaussian --size 5 --sigma 1 | "
            "crop --width 9 --height 9",
            2,
        ),
        ("invert | gaussian --size 3 --sigma 1 | gamma-contrast --gamma 2", 1),
        ("gaussian --size 3 --sigma 1 | median-blur --size 3", 2),
        ("rotate --angle 90 | cvtcolor --code rgb2gray", 2),
        ("histogrameq", 3),
    ),
)
def test_steps_share_launches(text, launches):
    chain = parse_chain(text)
    plan = chain.plan(SPEC)
    parts = explain(plan)
    assert len(parts) == launches
    assert parts[0].source == SPEC and parts[-1].target == plan.target
    named = [name for part in parts for name in part.steps.split(" + ")]
    for step in chain:
        assert any(step.name in name for name in named)


def test_bytes_are_counted():
    (part,) = explain(parse_chain(FOR_A_NETWORK).plan(SPEC))
    assert (part.reads, part.writes) == (1080 * 1920 * 3, 224 * 224 * 3 * 4)
    assert moved(parse_chain("invert | flip --axis 0").plan(SPEC)) == 2 * SPEC.nbytes
    assert moved_one_by_one(parse_chain("invert | flip --axis 0"), SPEC) == 4 * SPEC.nbytes


def test_the_command_prints_a_plan_for_each_kind_of_image(tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    for number, shape in enumerate(((20, 30, 3), (20, 30, 3), (9, 9, 3))):
        Image.fromarray(noise(shape, "uint8")).save(source / f"{number}.png")
    (source / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    words = ["run", "invert | flip --axis 0", str(source), str(target), "--explain"]
    done = CliRunner().invoke(make_app(words, {}), words)
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0] == "2 images of 30x20x3 uint8: 1 launch"
    assert "invert + flip" in lines[1] and "30x20x3 uint8 -> 30x20x3 uint8" in lines[1]
    assert "1 image of 9x9x3 uint8: 1 launch" in lines
    assert not target.exists()
    assert np.asarray(Image.open(source / "0.png")).shape == (20, 30, 3)


PHOTO = Image.open(ROOT / "sample_images" / "rocket.jpg").convert("RGB")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of images that a run treats in as many ways."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    big = PHOTO.resize((1600, 1200))
    big.save("in/big.jpg")
    exif = Image.Exif()
    exif[0x112] = 6
    big.save("in/turned.jpg", exif=exif)
    big.save("in/plain.png")
    PHOTO.resize((641, 427)).save("in/odd.jpg")
    PHOTO.resize((320, 240)).convert("CMYK").save("in/inks.jpg")
    PHOTO.resize((30, 20)).save(
        "in/pages.tif", save_all=True, append_images=[PHOTO.resize((50, 60))] * 2
    )
    frames = [Image.fromarray(np.full((20, 30, 3), 50 * i, np.uint8)) for i in range(5)]
    frames[0].save("in/frames.gif", save_all=True, append_images=frames[1:])
    return tmp_path


def explained(*words):
    """What is said of each kind of image: a headline, and the rows below it."""
    text = cvcli(*words, "--explain").stdout.decode()
    told = {}
    for block in text.strip().split("\n\n"):
        head, *rows = block.split("\n")
        told.setdefault(head, []).extend(rows)
    return told


def test_what_is_decoded_small_is_told_and_done(here):
    told = explained("resize", "100x", "in", "out")
    small = (
        "1 image of 1600x1200x3 uint8, decoded at 1/8 as 200x150 (--exact decodes all): 1 launch"
    )
    assert "200x150x3 uint8 -> 100x75x3 uint8" in told[small][0]
    # Turned upright it is 1200 wide, so that a quarter is what leaves enough.
    (head,) = (head for head in told if "1/4 as 400x300" in head)
    assert any("-> 100x133x3 uint8" in row for row in told[head])
    cvcli("resize", "100x", "in", "out", "-q", "--report", "report.json")
    rows = json.loads(Path("report.json").read_text())["images"]
    done = {Path(row["input"]).name: row for row in rows if "decoded at" in str(row["notes"])}
    assert {name: row["notes"] for name, row in done.items()} == {
        "big.jpg": ["decoded at 1/8"],
        "turned.jpg": ["decoded at 1/4"],
    }
    exact = explained("resize", "100x", "in", "out", "--exact")
    assert not any("decoded at" in head for head in exact)
    assert "2 images of 1600x1200x3 uint8: 1 launch" in exact  # the PNG is no other kind now


@pytest.mark.parametrize(
    ("chain", "moved", "failed"),
    [
        (
            "rotate --angle 90",
            ["1600x1200x3 -> 1200x1600x3", "1600x1200x3 -> 1600x1200x3", "320x240x3 -> 240x320x3"],
            ["frames.gif", "odd.jpg"],
        ),
        (
            "crop --x 16 --width 160 --height 99",
            ["1600x1200x3 -> 160x99x3", "320x240x3 -> 160x99x3", "641x427x3 -> 160x99x3"],
            ["frames.gif", "pages.tif"],
        ),
    ],
)
def test_what_is_moved_without_loss_or_fails_is_told_and_done(here, chain, moved, failed):
    told = explained("run", chain, "in", "out", "--lossless")
    rows = [row for head, rows in told.items() if head.endswith(": no launch") for row in rows]
    ends = ", by moving the blocks of the JPEG without decoding it"
    assert sorted(row.strip() for row in rows) == [
        re.sub(r"(x3)\b", r"\1 uint8", words) + ends for words in moved
    ]
    assert any(re.match("[12] images? of 30x20x3 uint8 will fail: ", head) for head in told)
    cvcli("run", chain, "in", "out", "--lossless", "-q", "--report", "report.json", code=1)
    rows = json.loads(Path("report.json").read_text())["images"]
    assert sorted(Path(r["input"]).name for r in rows if r["status"] == "failed") == failed
    reasons = " ".join(row["error"] for row in rows if row["status"] == "failed")
    for head in told:
        if " will fail: " in head:
            assert head.partition(" will fail: ")[2] in reasons


def test_what_becomes_of_each_picture_is_told(here):
    told = explained("flip", "--axis", "1", "in", "out")
    assert "6 images of 30x20x3 uint8: 1 launch" in told  # five frames and a page
    assert "2 images of 50x60x3 uint8: 1 launch" in told
    assert "1 image of 320x240x4 uint8: 1 launch" in told  # CMYK stays what it is
    told = explained("flip", "--axis", "1", "in", "out", "--frame", "1")
    assert "1 image of 50x60x3 uint8: 1 launch" in told
    assert "3 images of 1600x1200x3 uint8 will fail: there is no frame 1" in told
    told = explained("convertto", "--dtype", "float32", "in", "out")
    assert "3 images of 1600x1200x3 uint8 will fail: JPEG can't hold float32 pixels" not in told
    assert "2 images of 1600x1200x3 uint8 will fail: JPEG can't hold float32 pixels" in told


def test_outputs_that_exist_and_inputs_that_do_not(here):
    cvcli("flip", "--axis", "1", "in/plain.png", "in/odd.jpg", "out", "-q")
    told = explained("flip", "--axis", "1", "in/plain.png", "in/odd.jpg", "in/none.png", "out")
    assert len(told) == 3
    assert "1 input will fail, as in/none.png: no such file" in told
    told = explained("flip", "--axis", "1", "--skip-existing", "in/plain.png", "in/odd.jpg", "out")
    assert list(told) == ["2 inputs will be left out, as their outputs exist"]
    Path("bad.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    told = explained("invert", "bad.png", "in/plain.png", "out")
    assert "1 input can't be read as an image" in told
    done = cvcli("invert", "bad.png", "out", "--explain", code=2)
    assert done.stderr == "cvcli: explain: none of the inputs is an image that can be read\n"


def test_what_comes_through_stdin_is_explained_too(here):
    data = Path("in/big.jpg").read_bytes()
    done = cvcli("resize", "100x", "-", "-", "--explain", data=data)
    assert b"1600x1200x3 uint8, decoded at 1/8 as 200x150" in done.stdout
