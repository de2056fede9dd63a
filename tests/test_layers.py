"""The way imports run, what a command leaves unloaded, and how long files and functions are."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest
from conftest import ROOT, fresh_python

PACKAGE = ROOT / "cvcli"
FILES = {path.relative_to(PACKAGE).as_posix(): path for path in PACKAGE.rglob("*.py")}
MODULES = [pytest.param(name, id=name) for name in FILES]
# Each layer may import itself and those named; `errors` may be imported by all.
BELOW = {
    "cli": {"batch", "codecs", "ops", "core", "devices"},
    "batch": {"codecs", "ops", "core", "devices"},
    "ops": {"core", "devices"},
    "codecs": {"core", "devices"},
    "core": {"devices"},
    "devices": set(),
    "errors": set(),
}
# The package itself resolves names on first use, so it may look down into any layer.
TOP = {"__init__": set(BELOW), "__main__": {"cli"}}
OWNERS = {
    "cupy": {"devices/cuda.py", "devices/nvrtc.py"},
    "cupy_backends": {"devices/cuda.py", "devices/nvrtc.py"},
    "cupyx": {"devices/cuda.py", "devices/nvrtc.py"},
    "distributed": {"batch/cluster.py", "batch/schedulers.py", "batch/workers.py"},
    "fsspec": {"batch/remote.py", "batch/stores.py"},
    "PIL": {name for name in FILES if name.startswith("codecs/")},
    "imagecodecs": {name for name in FILES if name.startswith("codecs/")},
    "typer": {name for name in FILES if name.startswith("cli/")},
    "click": {name for name in FILES if name.startswith("cli/")},
    "rich": {name for name in FILES if name.startswith("cli/")},
}
HEAVY = ("numpy", "PIL", "imagecodecs", "cupy", "cupy_backends")


def tree(name):
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


def imported(name):
    """Absolute names of all that a module imports, anywhere in it."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(name):
    return name.split("/")[0].removesuffix(".py")


def layers_of(module):
    """The layer that a name inside the package belongs to, if any."""
    parts = module.split(".")
    return {parts[1]} & set(BELOW) if parts[0] == "cvcli" and len(parts) > 1 else set()


@pytest.mark.parametrize("name", MODULES)
def test_no_import_runs_up(name):
    own = layer(name)
    allowed = TOP[own] if own in TOP else BELOW[own] | {own, "errors"}
    used = set().union(*map(layers_of, imported(name)))
    assert used <= allowed, f"{name} imports {used - allowed}"


def test_every_folder_is_a_known_layer():
    assert {layer(name) for name in FILES} == set(BELOW) | set(TOP)
    assert set().union(*(layers_of(m) for n in FILES for m in imported(n))) == set(BELOW)


@pytest.mark.parametrize("name", MODULES)
def test_libraries_have_one_home(name):
    for module in imported(name):
        owners = OWNERS.get(module.split(".")[0])
        assert owners is None or name in owners, f"{name} imports {module}"


def test_a_device_never_sees_a_tensor():
    for name in FILES:
        if name.startswith("devices/"):
            words = {node.id for node in ast.walk(tree(name)) if isinstance(node, ast.Name)}
            assert not words & {"Tensor", "Stream", "Buffer"}, name


@pytest.mark.parametrize("name", MODULES)
def test_sizes(name):
    text = FILES[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert node.end_lineno - node.lineno < 60, f"{name}: {node.name}"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.relative_to(ROOT).as_posix())
        for pattern in ("kernels/**/*.h", "kernels/*.cpp", "tests/*.py")
        for path in sorted(ROOT.glob(pattern))
    ],
)
def test_sizes_outside_the_package(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


LOADED = "import json, sys; print(json.dumps(sorted({m.split('.')[0] for m in sys.modules})))"


def test_importing_the_command_leaves_cupy_out():
    loaded = json.loads(fresh_python(f"import cvcli.cli; {LOADED}"))
    assert "cvcli" in loaded and not {"cupy", "cupy_backends", "typer"} & set(loaded)


def test_importing_the_package_loads_next_to_nothing():
    loaded = json.loads(fresh_python(f"import cvcli; dir(cvcli); {LOADED}"))
    assert "cvcli" in loaded and not {*HEAVY, "typer", "rich"} & set(loaded)


def test_the_operators_leave_cupy_and_codecs_out():
    loaded = json.loads(fresh_python(f"import cvcli.ops; cvcli.ops.operators(); {LOADED}"))
    assert "cvcli" in loaded and not {"cupy", "cupy_backends", "PIL", "imagecodecs"} & set(loaded)


@pytest.mark.parametrize(
    "words", (["--version"], ["--help"], ["run", "--help"], ["flip", "--help"])
)
def test_version_and_help_leave_the_heavy_out(words):
    code = f"""
import atexit, runpy, sys
sys.argv = ["cvcli", *{words!r}]
def tell():
    heavy = sorted(set({HEAVY!r}) & set(sys.modules))
    print("loaded:", *heavy, "end")
atexit.register(tell)
runpy.run_module("cvcli", run_name="__main__")
"""
    lines = fresh_python(code).splitlines()
    assert len(lines) >= 2 and lines[-1] == "loaded: end"


def test_version_is_one_line():
    import cvcli

    for option in ("--version", "-V"):
        done = subprocess.run(
            [sys.executable, "-m", "cvcli", option], cwd=ROOT, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (0, f"cvcli {cvcli.__version__}\n")


def test_the_reader_of_imports_sees_them(tmp_path, monkeypatch):
    """The tests above pass on nothing if the reader is blind."""
    path = tmp_path / "x.py"
    path.write_text("def f():\n    from cvcli.cli import app\n    import cupy.cuda\n")
    monkeypatch.setitem(FILES, "core/x.py", path)
    with pytest.raises(AssertionError, match="imports"):
        test_no_import_runs_up("core/x.py")
    with pytest.raises(AssertionError, match="imports"):
        test_libraries_have_one_home("core/x.py")
