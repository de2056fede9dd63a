"""Compiles kernels for the host; what is compiled is kept, by the hash of all that went in."""

from __future__ import annotations

import ctypes
import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cvcli.devices import nvrtc
from cvcli.devices.base import Kernel

HERE = Path(__file__).resolve().parent
# No TBAA, no contraction, calls instead of checks in place, and variables of its own in each.
FLAGS = (
    *("-std=c++17", "-O1", "-g1", "-w", "-fPIC", "-shared", "-nostartfiles", "-fno-exceptions"),
    *("-ffp-contract=off", "-fno-strict-aliasing", "-fvisibility=hidden", "-fno-gnu-unique"),
    "-fsanitize=kernel-address",
    *("--param", "asan-instrumentation-with-call-threshold=0"),
    *("--param", "asan-stack=0", "--param", "asan-globals=0"),
    "-fsanitize=alignment,float-cast-overflow,shift-exponent,bounds,integer-divide-by-zero",
)
HEADERS = ("runtime.h", "switch.h", "cuda.h", "cuda_math.h")
RUNTIME_FLAGS = ("-std=c++17", "-O2", "-g1", "-fPIC", "-shared", "-Wall", "-Wextra")
HEAD = '#include "cuda.h"\n'
# The image is everything the library holds; shared variables are all there is in its bss.
TAIL = """
template <int... I>
struct EmuIndices {};
template <int N, int... I>
struct EmuCount : EmuCount<N - 1, N - 1, I...> {};
template <int... I>
struct EmuCount<0, I...> {
    using type = EmuIndices<I...>;
};
template <class... A, int... I>
__attribute__((no_sanitize("kernel-address"))) static void emu_call(
    void (*kernel)(A...), void** at, EmuIndices<I...>) {
    kernel(*static_cast<A*>(at[I])...);
}
template <class... A>
static void emu_call(void (*kernel)(A...), void** at) {
    emu_call(kernel, at, typename EmuCount<sizeof...(A)>::type());
}
extern __attribute__((visibility("hidden"))) char __ehdr_start[], __bss_start[], _end[];
extern "C" __attribute__((visibility("default"))) void emu_places(const void** out) {
    out[0] = __ehdr_start;
    out[1] = __bss_start;
    out[2] = _end;
}
"""
ENTRY = """
extern "C" __attribute__((visibility("default"))) void emu_call_{digest}(void** arguments) {{
    emu_call({entry}, arguments);
}}
"""


@dataclass(frozen=True)
class Compiled:
    """A kernel's function, and where its library and the shared variables in it lie."""

    path: Path
    call: int
    image: int
    shared: int
    end: int


def folder() -> Path:
    path = Path(tempfile.gettempdir()) / f"cvcli-emulator-{os.getuid()}"
    path.mkdir(exist_ok=True)
    return path


def _compile(source: str, flags: Iterable[str], kept: str) -> Path:
    """Compile one unit; `kept` names all that it depends on."""
    name = hashlib.sha256("\0".join((source, *flags, kept)).encode()).hexdigest()[:32]
    path = folder() / f"{name}.so"
    # Tests in several processes want the same kernels at the same time.
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _build(path, source, flags)
    return path


def _build(path: Path, source: str, flags: Iterable[str]) -> None:
    compiler = shutil.which("g++")
    assert compiler, "the emulator needs g++"
    fresh = path.with_suffix(f".{os.getpid()}")
    unit = path.with_suffix(".cpp")
    unit.write_text(source)
    command = [compiler, *flags, f"-I{HERE}", str(unit), "-o", str(fresh)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{unit}:\n{done.stderr[:6000]}")
    unit.unlink()
    fresh.replace(path)


@cache
def _headers() -> str:
    return "".join((HERE / name).read_text() for name in HEADERS)


@cache
def runtime() -> ctypes.CDLL:
    """The emulator itself, whose symbols the kernels use."""
    source = (HERE / "runtime.cpp").read_text()
    path = _compile(source, RUNTIME_FLAGS, _headers())
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    library.emu_run.restype = ctypes.c_char_p
    return library


_KEPT: dict[Kernel, Compiled] = {}


def _digest(kernel: Kernel) -> str:
    return hashlib.sha256(nvrtc.source_of(kernel).encode()).hexdigest()[:16]


def _unit(kernels: list[Kernel]) -> str:
    """One translation unit with several kernels of the same headers."""
    lines, bodies, calls = [], [], []
    for digest, kernel in {_digest(kernel): kernel for kernel in kernels}.items():
        source = nvrtc.source_of(kernel).replace(f"{nvrtc.ENTRY}(", f"kernel_{digest}(")
        for line in source.splitlines():
            (lines if line.startswith("#include") else bodies).append(line)
        calls.append(ENTRY.format(digest=digest, entry=f"kernel_{digest}"))
    expanded = nvrtc.expand("\n".join(dict.fromkeys(lines)) + "\n")
    return HEAD + expanded + '#line 1 "kernel.cu"\n' + "\n".join(bodies) + TAIL + "".join(calls)


def _open(path: Path, kernels: list[Kernel]) -> None:
    runtime()
    library = ctypes.CDLL(str(path))
    places = (ctypes.c_void_p * 3)()
    library.emu_places(places)
    for kernel in kernels:
        call = ctypes.cast(getattr(library, f"emu_call_{_digest(kernel)}"), ctypes.c_void_p)
        _KEPT[kernel] = Compiled(path, call.value, places[0], places[1], places[2])


def compile_all(kernels: Iterable[Kernel], most: int = 8) -> None:
    """Compile kernels ahead, `most` of one pattern in a unit, two units at a time."""
    runtime()
    patterns: dict[str, list[Kernel]] = {}
    for kernel in dict.fromkeys(kernels):
        if kernel not in _KEPT:
            patterns.setdefault(kernel.pattern, []).append(kernel)
    units = [many[i : i + most] for many in patterns.values() for i in range(0, len(many), most)]
    extra = os.environ.get("CVCLI_EMULATOR_FLAGS", "").split()
    with ThreadPoolExecutor(2) as pool:
        paths = pool.map(lambda unit: _compile(_unit(unit), (*FLAGS, *extra), _headers()), units)
        for path, unit in zip(paths, units, strict=True):
            _open(path, unit)


def compiled(kernel: Kernel) -> Compiled:
    """The function of a kernel, compiled at need."""
    if kernel not in _KEPT:
        compile_all([kernel])
    return _KEPT[kernel]


def place_of(code: Compiled, address: int) -> str:
    """Name the lines of an address in the code, those inlined into another one too."""
    tool = shutil.which("addr2line")
    if tool is None or not address:
        return ""
    command = [tool, "-e", str(code.path), "-i", "-s", hex(address - code.image - 1)]
    done = subprocess.run(command, capture_output=True, text=True)
    return " < ".join(done.stdout.split()[:8])
