"""What the README shows works as it stands."""

from __future__ import annotations

import re
import shlex

import pytest
from conftest import ROOT, noise
from PIL import Image

from cvcli.cli.app import run_app

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if line.startswith("cvcli ")
]


def test_the_python_examples_run_in_turn():
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks) > 1
    for block in blocks:
        exec(block, names)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_run(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    Image.fromarray(noise((500, 700, 3), "uint8")).save("photos/a.jpg")
    assert run_app([*shlex.split(command)[1:], "--device", "cpu"]) == 0
    assert [path.name for path in tmp_path.glob("*/a.jpg") if path.parent.name != "photos"]


def test_both_ways_in_are_there():
    assert re.search(r"pip install \. && .*cvcli flip --axis -1 sample_images/ out/", TEXT)
    assert re.search(r"pip install '\.\[dev\]' && \.venv/bin/pytest$", TEXT, re.MULTILINE)
