"""``cvcli doctor``: what this machine offers, and what to do about what it lacks.

Every probe stands alone: whatever is broken, the others still answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from cvcli.cli.console import emit
from cvcli.errors import EXIT_FAILED, EXIT_OK, CvcliError, DeviceError

SCHEMA_VERSION = 1
_CUPY = ("cupy-cuda13x", "cupy-cuda12x", "cupy")
_RUNTIME = ("nvidia-cuda-runtime", "nvidia-cuda-runtime-cu13", "nvidia-cuda-runtime-cu12")
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
) -> None:
    """Show what this machine offers, and what to do about what it lacks.

    Ends with 0 if cvcli can run here, with 1 if not.
    """
    report = examine()
    if as_json:
        import json

        emit(json.dumps(report, indent=1) + "\n")
    else:
        emit("\n".join(_lines(report)) + "\n")
    raise typer.Exit(EXIT_OK if report["ok"] else EXIT_FAILED)


def examine() -> dict[str, Any]:
    """Return what each probe says, None where it failed.

    ``errors`` holds one sentence a failed probe, ``tips`` what to do; ``ok`` is whether cvcli can
    run. Memory and the cache are in bytes.
    """
    errors: dict[str, str] = {}
    tips: list[str] = []
    report: dict[str, Any] = {"schema_version": SCHEMA_VERSION}
    report |= {name: _ask(name, probe, errors, tips) for name, probe in _PROBES.items()}
    ok = bool(report["codecs"]) and report["check_cpu"] == "ok"
    tips += _guarded_tips(report, errors)
    return report | {"ok": ok, "errors": errors, "tips": list(dict.fromkeys(tips))}


def machine() -> dict[str, Any]:
    """Return what timings should be read with: versions, processor, GPUs; None for what failed."""
    return {name: _ask(name, _PROBES[name], {}, []) for name in _MACHINE}


def _ask(name: str, probe: Callable[[], Any], errors: dict[str, str], tips: list[str]) -> Any:
    try:
        return probe()
    except CvcliError as error:
        errors[name] = str(error)
        tips += [error.tip] if error.tip else []
    except Exception as error:
        errors[name] = f"{type(error).__name__}: {error}"
    return None


def _version() -> str:
    from cvcli import __version__

    return __version__


def _python() -> str:
    import platform
    import sys

    return f"{platform.python_version()} ({sys.executable})"


def _platform() -> str:
    import platform

    return platform.platform()


def _processor() -> str:
    import platform
    from pathlib import Path

    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine()


def _threads() -> int:
    from cvcli.devices import cpu

    return cpu.cpu_threads()


def _simd() -> str:
    from cvcli.devices import cpu

    return cpu.simd_level()


def _gpus() -> list[dict[str, Any]]:
    from cvcli.devices import find

    return [asdict(find.describe_gpu(index)) for index in range(find.gpu_count())]


def _driver() -> str | None:
    """Return the newest CUDA version that the driver supports."""
    from cvcli.devices import find

    version = find.driver_version()
    return None if version is None else f"{version[0]}.{version[1]}"


def _installed(names: Sequence[str]) -> str | None:
    """Return the first of some packages that is installed, with its version."""
    from importlib import metadata

    for name in names:
        try:
            return f"{metadata.version(name)} ({name})"
        except metadata.PackageNotFoundError:
            continue
    return None


def _cuda_runtime() -> str | None:
    return _installed(_RUNTIME) or _system_runtime()


def _system_runtime() -> str | None:
    import ctypes

    for name in ("libcudart.so.13", "libcudart.so.12"):
        number = ctypes.c_int()
        try:
            ctypes.CDLL(name).cudaRuntimeGetVersion(ctypes.byref(number))
        except OSError:
            continue
        return f"{number.value // 1000}.{number.value % 1000 // 10} ({name})"
    return None


def _cupy() -> str | None:
    return _installed(_CUPY)


def _nvrtc() -> str | None:
    from cvcli.devices import find, nvrtc

    return nvrtc.nvrtc_version() if find.cupy_installed() else None


def _gpu_codecs() -> str | None:
    from cvcli.codecs import gpu

    return gpu.version() if gpu.installed() else None


def _codecs() -> dict[str, str]:
    from cvcli import codecs

    return codecs.versions()


def _cache() -> dict[str, Any]:
    from cvcli.devices import nvrtc

    folder = nvrtc.cache_dir()
    sizes = [path.stat().st_size for path in folder.glob("*.cubin")] if folder.is_dir() else []
    return {"path": str(folder), "files": len(sizes), "nbytes": sum(sizes)}


def _default_device() -> str:
    from cvcli.devices import find

    return find.default_device_name()


def _check_cpu() -> str:
    return _check("cpu")


def _check_cuda() -> str | None:
    name = _default_device()
    return None if name == "cpu" else _check(name)


def _check(device: str) -> str:
    """Run a chain on four pixels: memory, streams and kernels of a device must all work."""
    import numpy as np

    from cvcli.core.apply import apply
    from cvcli.core.interop import as_tensor
    from cvcli.ops import parse_chain

    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    result = apply(parse_chain("flip --axis -1 | invert"), as_tensor(pixels, "HWC").to(device))
    if not np.array_equal(result.numpy(), 255 - pixels[::-1, ::-1]):
        raise DeviceError(f"{device}: a test image came out wrong")
    return "ok"


_PROBES: Mapping[str, Callable[[], Any]] = {
    "version": _version,
    "python": _python,
    "platform": _platform,
    "processor": _processor,
    "threads": _threads,
    "simd": _simd,
    "gpus": _gpus,
    "driver": _driver,
    "cuda_runtime": _cuda_runtime,
    "cupy": _cupy,
    "nvrtc": _nvrtc,
    "gpu_codecs": _gpu_codecs,
    "codecs": _codecs,
    "cache": _cache,
    "default_device": _default_device,
    "check_cpu": _check_cpu,
    "check_cuda": _check_cuda,
}
_MACHINE = ("version", "python", "platform", "processor", "threads", "simd", "gpus", "driver",
            "cuda_runtime", "cupy", "nvrtc", "gpu_codecs")  # fmt: skip


def _guarded_tips(report: Mapping[str, Any], errors: Mapping[str, str]) -> list[str]:
    try:
        return _tips(report, errors)
    except Exception as error:
        return [f"no tips: {error}"]


def _tips(report: Mapping[str, Any], errors: Mapping[str, str]) -> list[str]:
    tips = []
    if not report["codecs"]:
        tips.append("no image file can be read: pip install --upgrade imagecodecs pillow")
    if "check_cpu" in errors and "simd" not in errors:
        tips.append("the CPU device does not work: reinstall cvcli")
    return tips + _gpu_tips(report, errors)


def _gpu_tips(report: Mapping[str, Any], errors: Mapping[str, str]) -> list[str]:
    from cvcli.devices import find

    if not report["gpus"]:
        why = "the driver shows no GPU" if report["driver"] else "no NVIDIA GPU or driver was found"
        return [f"{why}: cvcli runs on the CPU"]
    if not report["cupy"] and not find.cupy_installed():
        return [f"a GPU is idle because CuPy is not installed: {find.cupy_tip()}"]
    if "check_cuda" in errors:
        return [f"the GPU does not work, use --device cpu or repair CuPy: {find.cupy_tip()}"]
    if not report["gpu_codecs"]:
        from cvcli.batch.device import codec_tip

        return [f"the GPU could decode and encode JPEGs too: {codec_tip()}"]
    return []


def _lines(report: Mapping[str, Any]) -> list[str]:
    """Return the report as aligned ``name: value`` lines."""
    values: dict[str, str] = {}
    for name in _PROBES:
        if name == "gpus":
            values |= _gpu_values(report[name]) if report[name] else {"GPU": "none"}
        elif report[name] is not None:
            values[_title(name)] = _SHOW.get(name, str)(report[name])
    values |= {_title(name): f"broken, {error}" for name, error in report["errors"].items()}
    width = max(map(len, values)) + 1
    lines = [f"{name + ':':{width}} {' '.join(value.split())}" for name, value in values.items()]
    return lines + [f"{'tip:':{width}} {' '.join(tip.split())}" for tip in report["tips"]]


def _title(name: str) -> str:
    return _TITLES.get(name, name.replace("_", " "))


def _gpu_values(gpus: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    return {
        f"GPU {gpu['index']}": f"{gpu['name']}, compute capability "
        f"{gpu['compute'][0]}.{gpu['compute'][1]}, {_size(gpu['memory'])}"
        for gpu in gpus
    }


def _size(nbytes: float) -> str:
    """Return bytes in the largest unit that leaves at least 1."""
    unit = 0
    while nbytes >= 1024 and unit < len(_UNITS) - 1:
        nbytes, unit = nbytes / 1024, unit + 1
    return f"{nbytes:.1f} {_UNITS[unit]}" if unit else f"{nbytes:.0f} bytes"


def _show_cache(cache: Mapping[str, Any]) -> str:
    return f"{cache['path']} ({cache['files']} kernels, {_size(cache['nbytes'])})"


def _show_codecs(codecs: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in codecs.items())


_SHOW: Mapping[str, Callable[[Any], str]] = {"cache": _show_cache, "codecs": _show_codecs}
_TITLES: Mapping[str, str] = {
    "version": "cvcli",
    "simd": "SIMD",
    "gpus": "GPU",
    "driver": "driver up to CUDA",
    "cuda_runtime": "CUDA runtime",
    "cupy": "CuPy",
    "nvrtc": "NVRTC",
    "gpu_codecs": "GPU codecs",
    "cache": "kernel cache",
    "check_cpu": "CPU check",
    "check_cuda": "GPU check",
}
