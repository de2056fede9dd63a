"""Compile kernels with NVRTC into cubins, kept in a cache on disk that we own.

The key is the whole expanded source, the options, the architecture and the NVRTC version, so an
edited header or a new compiler never meets a stale cubin, and a warm start never loads NVRTC.
"""

import hashlib
import importlib.metadata
import os
import re
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from cvcli.devices.base import Functor, Kernel
from cvcli.errors import CompileError

# Without contraction, flushing or approximation the GPU rounds every step as the CPU does.
OPTIONS = (
    "--std=c++17",
    "--fmad=false",
    "--ftz=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--device-as-default-execution-space",
)
ARCHITECTURES = (75, 80, 86, 89, 90, 100, 120)
ENTRY = "cvcli_kernel"
_DIGEST_NBYTES = hashlib.sha256().digest_size
THREADS = 256
WARP = 32
_INCLUDE = re.compile(r'\s*#include "([^"]+)"\s*$')
_C_TYPE = {"uint8": "uint8_t", "uint16": "uint16_t", "float32": "float"}


def kernel_dir() -> Path:
    """Return the folder of the kernel headers: in the package, or beside it in a checkout."""
    import cvcli

    candidates = [Path(folder) / "kernels" for folder in cvcli.__path__]
    candidates += [Path(folder).parent / "kernels" for folder in cvcli.__path__]
    for path in candidates:
        if (path / "core" / "map.h").is_file():
            return path
    raise CompileError("the kernel headers are missing from the installation")


def camel(name: str) -> str:
    """Return the C++ type of an operator: ``brightness_contrast`` is ``BrightnessContrast``."""
    return "".join(part.capitalize() for part in name.split("_"))


def source_of(kernel: Kernel) -> str:
    """Return the translation unit that instantiates one kernel."""
    return _map_source(kernel) if kernel.tile is None else _pattern_source(kernel)


def _pattern_source(kernel: Kernel) -> str:
    functors = (*kernel.before, *kernel.after)
    headers = sorted({f.name.partition(".")[0] for f in functors if f.name != "table"})
    includes = "".join(f'#include "{name}.h"\n' for name in headers)
    names = [f"f{i}" for i in range(len(functors))]
    blocks = "".join(
        f", const {_functor_type(f)} {name}" for f, name in zip(functors, names, strict=True)
    )
    bounds = f"{kernel.threads}, {kernel.blocks}" if kernel.blocks else f"{kernel.threads}"
    flags = (kernel.uniform, kernel.moved, *kernel.planar)
    dtype, channels = kernel.source
    kinds = f"{', '.join(str(flag).lower() for flag in flags)}, {_C_TYPE[dtype]}, {channels}"
    template = f"<{', '.join(map(str, kernel.template))}>" if kernel.template else ""
    cut = len(kernel.before)
    steps = (f"cvcli::steps({', '.join(part)})" for part in (names[:cut], names[cut:]))
    return (
        f'#include "core/patterns/{kernel.pattern}.h"\n{includes}'
        f'extern "C" __global__ void __launch_bounds__({bounds})\n'
        f"{ENTRY}(const __grid_constant__ cvcli::MapArgs args, const __grid_constant__ "
        f"cvcli::Each<cvcli::{camel(kernel.pattern)}Params> each{blocks}) {{\n"
        f"    cvcli::{kernel.pattern}{template}("
        f"cvcli::work<{kinds}>(args, {', '.join(steps)}), each);\n}}\n"
    )


def _functor_type(functor: Functor) -> str:
    """Return the C++ type of a step on pixels."""
    if functor.name == "table":
        return "cvcli::Lookups"
    header, _, kind = functor.name.partition(".")
    name = f"cvcli::{kind or camel(header)}"
    return f"cvcli::Samples<{name}<float>>" if functor.samples else name


def _map_source(kernel: Kernel) -> str:
    names = [name for name in kernel.functors if name != "table"]
    core = "core/room_cuda" if kernel.room else "core/map"
    includes = "".join(f'#include "{name}.h"\n' for name in [core, *sorted(set(names))])
    params = "".join(f", const cvcli::{camel(name)}<float> f{i}" for i, name in enumerate(names))
    pixel = _C_TYPE[kernel.dtype]
    arguments = f"{str(kernel.uniform).lower()}, {pixel}, {kernel.channels}"
    if names:
        functor = f"cvcli::pipe({', '.join(f'f{i}' for i in range(len(names)))})"
    else:
        table = "cvcli::RoomTable{}" if kernel.room else f"cvcli::Table<{pixel}>{{}}"
        functor = table if kernel.functors else "cvcli::Identity{}"
    # Moves and tables live on loads in flight, so on blocks a multiprocessor: with a fourth one
    # they are fastest, with a fifth they spill. Float functors need the registers more.
    bounds = f"{THREADS}" if names else f"{THREADS}, 4"
    if kernel.room:
        bounds = f"{kernel.threads}, 1"
        includes = f"#define CVCLI_BLOCK_WARPS {kernel.threads // WARP}\n{includes}"
    return (
        f'{includes}extern "C" __global__ void __launch_bounds__({bounds})\n'
        f"{ENTRY}(const __grid_constant__ cvcli::MapArgs args{params}) {{\n"
        f"    cvcli::{kernel.pattern}<{arguments}>(args, {functor});\n}}\n"
    )


def expand(source: str) -> str:
    """Return the source with each header put in place once, those of the CPU left out.

    Errors keep their lines.
    """
    return _expand(source, "kernel.cu", kernel_dir(), set())


def _expand(source: str, name: str, folder: Path, seen: set[Path]) -> str:
    lines = []
    for number, line in enumerate(source.splitlines(), 1):
        match = _INCLUDE.match(line)
        if match is None:
            lines.append("" if line.startswith("#pragma once") else line)
            continue
        if match[1].endswith("_cpu.h"):
            # In a branch that is not for the GPU: what it includes may be needed further down.
            lines.append("")
            continue
        path = _resolve(match[1], folder)
        if path not in seen:
            seen.add(path)
            text = path.read_text(encoding="utf-8")
            lines.append(f'#line 1 "{path.name}"')
            lines.append(_expand(text, path.name, path.parent, seen))
        lines.append(f'#line {number + 1} "{name}"')
    return "\n".join(lines) + "\n"


def _resolve(name: str, folder: Path) -> Path:
    for base in (folder, kernel_dir()):
        path = (base / name).resolve()
        if path.is_file():
            return path
    raise CompileError(f"kernel header {name} is missing")


@cache
def nvrtc_version() -> str:
    """Return what names the NVRTC in use without loading it: its package, or the system's."""
    for name in ("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12"):
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    from cupy_backends.cuda.api import runtime

    return f"system {runtime.runtimeGetVersion()}"


def cache_dir() -> Path:
    """Return the folder of compiled kernels; ``CVCLI_CACHE_DIR`` overrides the system's choice."""
    if "CVCLI_CACHE_DIR" in os.environ:
        return Path(os.environ["CVCLI_CACHE_DIR"])
    if sys.platform == "win32":
        root = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        root = Path.home() / "Library" / "Caches"
    else:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "cvcli"


def cubin(kernel: Kernel, compute: tuple[int, int]) -> bytes:
    """Return the machine code of a kernel for one compute capability, from the cache if there."""
    path, source = _entry(kernel, compute)
    code = _load(path)
    if code is None:
        code = compile_source(source, compute[0] * 10 + compute[1])
        _store(path, code)
    return code


def _entry(kernel: Kernel, compute: tuple[int, int]) -> tuple[Path, str]:
    source = expand(source_of(kernel))
    parts = [source, *OPTIONS, f"sm_{compute[0]}{compute[1]}", nvrtc_version()]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]
    return cache_dir() / f"{kernel.pattern}-{key}.cubin", source


def _load(path: Path) -> bytes | None:
    """Return a cubin from the cache, if it is there and whole: a driver crashes on half of one."""
    try:
        kept = path.read_bytes()
    except OSError:
        return None
    code = kept[_DIGEST_NBYTES:]
    return code if kept[:_DIGEST_NBYTES] == hashlib.sha256(code).digest() else None


def _store(path: Path, code: bytes) -> None:
    """Keep a cubin for the next start; a cache that can't be written only costs time."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(hashlib.sha256(code).digest() + code)
        try:
            Path(file.name).replace(path)
        finally:
            Path(file.name).unlink(missing_ok=True)


def compile_source(source: str, arch: int) -> bytes:
    """Compile expanded source for ``sm_<arch>``; return a cubin, or PTX for a GPU newer than NVRTC.

    Raises `CompileError` with the compiler's log.
    """
    from cupy_backends.cuda.libs import nvrtc

    known = [int(number) for number in nvrtc.getSupportedArchs()]
    target, real = _target(arch, known)
    program = nvrtc.createProgram(source, "cvcli.cu", (), ())
    try:
        prefix = "sm" if real else "compute"
        options = (*OPTIONS, f"--gpu-architecture={prefix}_{target}")
        try:
            nvrtc.compileProgram(program, options)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise CompileError(f"a kernel did not compile for sm_{arch} ({error})\n{log}") from None
        return bytes(nvrtc.getCUBIN(program) if real else nvrtc.getPTX(program))
    finally:
        nvrtc.destroyProgram(program)


def _target(arch: int, known: list[int]) -> tuple[int, bool]:
    """Pick what to compile for: cubins run on their own major version, PTX on anything newer."""
    same_major = [number for number in known if number // 10 == arch // 10 and number <= arch]
    if same_major:
        return max(same_major), True
    older = [number for number in known if number <= arch]
    if not older:
        raise CompileError(f"this NVRTC can't compile for sm_{arch}")
    return max(older), False
