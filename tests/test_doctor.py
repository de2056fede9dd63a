"""``cvcli doctor``: it answers whatever is broken, and says what to do."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cvcli.cli import doctor
from cvcli.cli.app import run_app
from cvcli.devices import cpu, find, nvrtc
from cvcli.devices.find import Gpu
from cvcli.errors import DeviceError

KEYS = {
    "schema_version", "version", "python", "platform", "processor", "threads", "simd", "gpus",
    "driver", "cuda_runtime", "cupy", "nvrtc", "gpu_codecs", "codecs", "cache", "default_device",
    "check_cpu", "check_cuda", "ok", "errors", "tips",
}  # fmt: skip


def _raise(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> Any:
        raise error

    return fail


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "gpu_count", lambda: 0)
    monkeypatch.setattr(find, "driver_version", lambda: None)


@pytest.fixture
def idle_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with a GPU and without CuPy."""
    monkeypatch.setattr(find, "gpu_count", lambda: 1)
    monkeypatch.setattr(find, "driver_version", lambda: (13, 0))
    monkeypatch.setattr(find, "describe_gpu", lambda i: Gpu(i, "NVIDIA Test", (9, 0), 8 << 30))
    monkeypatch.setattr(find, "cupy_installed", lambda: False)
    monkeypatch.setattr(doctor, "_CUPY", ())


def test_json_has_every_key_and_runs_in_a_process_of_its_own() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "cvcli", "doctor", "--json"], capture_output=True, text=True
    )
    report = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(report) == KEYS
    assert report["schema_version"] == doctor.SCHEMA_VERSION
    assert report["ok"] is True
    assert report["errors"] == {}
    assert report["check_cpu"] == "ok"
    assert report["codecs"]["imagecodecs"]


def test_human_form_is_aligned_name_value_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["doctor"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert err == ""
    assert lines[0].split() == ["cvcli:", doctor.examine()["version"]]
    starts = {len(line) - len(line.partition(":")[2].lstrip()) for line in lines}
    assert len(starts) == 1


@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_the_cpu_is_used(capsys: pytest.CaptureFixture[str]) -> None:
    report = doctor.examine()
    assert report["gpus"] == []
    assert report["default_device"] == "cpu"
    assert report["ok"]
    assert report["tips"] == ["no NVIDIA GPU or driver was found: cvcli runs on the CPU"]
    assert run_app(["doctor"]) == 0
    assert "GPU: none" in " ".join(capsys.readouterr().out.split())


@pytest.mark.usefixtures("no_gpu")
def test_a_driver_that_shows_no_gpu_is_told_from_no_driver(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(find, "driver_version", lambda: (12, 4))
    report = doctor.examine()
    assert report["driver"] == "12.4"
    assert report["tips"] == ["the driver shows no GPU: cvcli runs on the CPU"]


@pytest.mark.usefixtures("idle_gpu")
def test_a_gpu_without_cupy_gets_the_pip_line(capsys: pytest.CaptureFixture[str]) -> None:
    report = doctor.examine()
    assert report["gpus"][0]["name"] == "NVIDIA Test"
    assert any("pip install 'cvcli[cuda13]'" in tip for tip in report["tips"])
    assert report["ok"]
    assert run_app(["doctor"]) == 0
    assert "NVIDIA Test, compute capability 9.0, 8.0 GiB" in capsys.readouterr().out


def test_a_gpu_that_fails_the_check_is_an_error_with_a_tip_but_the_cpu_still_runs(
    idle_gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find, "default_device_name", lambda: "cuda:0")
    real = doctor._check
    broken = _raise(ImportError("libcudart.so.13: no such file"))
    monkeypatch.setattr(doctor, "_check", lambda name: real(name) if name == "cpu" else broken())
    monkeypatch.setattr(doctor, "_CUPY", ("numpy",))
    report = doctor.examine()
    assert report["errors"]["check_cuda"] == "ImportError: libcudart.so.13: no such file"
    assert any("--device cpu" in tip for tip in report["tips"])
    assert report["ok"]


def test_missing_kernels_end_with_1_and_their_tip(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = DeviceError("the compiled kernels are missing", tip="reinstall cvcli")
    monkeypatch.setattr(cpu, "simd_level", _raise(missing))
    monkeypatch.setattr(doctor, "_check", _raise(missing))
    assert run_app(["doctor"]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "SIMD: broken, the compiled kernels are missing" in out
    assert "tip: reinstall cvcli" in out


def test_missing_codecs_end_with_1(monkeypatch: pytest.MonkeyPatch) -> None:
    import cvcli.codecs

    monkeypatch.setattr(cvcli.codecs, "versions", _raise(ImportError("no imagecodecs")))
    report = doctor.examine()
    assert not report["ok"]
    assert any("imagecodecs" in tip for tip in report["tips"])


@pytest.mark.parametrize("name", list(doctor._PROBES))
def test_each_broken_probe_leaves_the_others_alone(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    probes = dict(doctor._PROBES) | {name: _raise(RuntimeError("two\nlines"))}
    monkeypatch.setattr(doctor, "_PROBES", probes)
    report = doctor.examine()
    assert report[name] is None
    assert report["errors"][name] == "RuntimeError: two\nlines"
    assert report["ok"] == (name not in ("codecs", "check_cpu"))
    assert run_app(["doctor"]) == (0 if report["ok"] else 1)
    assert "broken, RuntimeError: two lines\n" in capsys.readouterr().out


def test_every_probe_broken_still_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = dict.fromkeys(doctor._PROBES, _raise(OSError("gone")))
    monkeypatch.setattr(doctor, "_PROBES", broken)
    monkeypatch.setattr(find, "cupy_installed", _raise(OSError("gone")))
    assert run_app(["doctor", "--json"]) == 1
    assert set(json.loads(capsys.readouterr().out)["errors"]) == set(broken)


def test_the_cache_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "cache_dir", lambda: tmp_path)
    (tmp_path / "map_rows-1.cubin").write_bytes(b"x" * 2048)
    (tmp_path / "map_rows-2.cubin").write_bytes(b"x" * 1024)
    cache = doctor.examine()["cache"]
    assert cache == {"path": str(tmp_path), "files": 2, "nbytes": 3072}
    assert doctor._show_cache(cache) == f"{tmp_path} (2 kernels, 3.0 KiB)"


def test_cupy_is_not_imported() -> None:
    code = (
        "import sys; from cvcli.cli.app import run_app; run_app(['doctor']);"
        "assert 'cupy' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.gpu
def test_on_a_gpu_everything_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_app(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["gpus"]
    assert report["check_cuda"] == "ok"
    assert report["default_device"] == "cuda:0"
    assert report["cupy"]
    assert report["nvrtc"]
