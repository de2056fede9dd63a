"""``--explain``: the launches a chain becomes, and the bytes they move."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import noise
from PIL import Image
from typer.testing import CliRunner

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
