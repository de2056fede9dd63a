"""What the README shows works as it stands."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest
from conftest import ROOT, noise
from PIL import Image

import cvcli
from cvcli import errors
from cvcli.cli.settings import load_settings

TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
    if "cvcli " in line and "pip install" not in line
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
    script = re.sub(r"\bcvcli ", f"{shlex.quote(sys.executable)} -m cvcli ", command)
    own = {**os.environ, "CVCLI_DEVICE": "cpu"}
    done = subprocess.run(["bash", "-o", "pipefail", "-c", script], env=own, timeout=100)
    assert done.returncode == 0
    made = [path for path in tmp_path.rglob("*.jpg") if path != tmp_path / "photos" / "a.jpg"]
    assert len(made) == 1
    with Image.open(made[0]) as image:
        assert image.format == "JPEG"


def test_the_settings_shown_are_settings(tmp_path, monkeypatch):
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cvcli.toml").write_text(block)
    settings = load_settings([], {})
    assert settings.values == {"jobs": 4, "skip_existing": True}
    (chain,) = re.findall(r'cvcli run "(.*?)"', block)
    assert len(cvcli.parse_chain(chain, presets=settings.presets).steps) == 2


def test_the_exit_codes_are_all_there():
    first_cells = re.findall(r"^\| (\d[\d, ]*) \|", TEXT, re.MULTILINE)
    table = {int(code) for cell in first_cells for code in cell.split(",")}
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_")}
    assert codes <= table


def test_both_ways_in_are_there():
    assert re.search(r"pip install \. && .*cvcli flip --axis -1 sample_images/ out/", TEXT)
    assert re.search(r"pip install '\.\[dev\]' && \.venv/bin/pytest$", TEXT, re.MULTILINE)
