"""Both compilers see the same structs, every kernel compiles, and the cache of cubins holds."""

from __future__ import annotations

import ctypes
import importlib
import multiprocessing
import pkgutil
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from itertools import count, cycle, product
from pathlib import Path

import pytest
from conftest import (
    CASES,
    CHANNELS,
    DTYPES,
    ROOT,
    chain_of,
    fresh_python,
    is_pointwise,
    specs_for,
)

import cvcli.core.patterns
from cvcli.core.kernels import kernel_of
from cvcli.core.pixelwise import Pixelwise
from cvcli.core.spec import ITEMSIZE, ImageSpec
from cvcli.devices import geometry, nvrtc
from cvcli.devices.base import Kernel, Launch
from cvcli.devices.params import BLOCKS, MapArgs
from cvcli.errors import CompileError
from cvcli.ops import operators

PATTERNS = ("map_rows", "map_forward", "map_mirrored", "map_tiles")
POINTWISE = [op for op in operators() if is_pointwise(op, op.cases[0])]
INVERT = Kernel("map_rows", "float32", 3, ("invert",))
PIXELS = sorted({ITEMSIZE[dtype] * channels for dtype, channels in product(DTYPES, CHANNELS)})


def asserted(condition):
    return f'static_assert({condition}, "python");\n'


def every_pass():
    """The passes of every operator's cases, on one image of each kind that they accept."""
    for parameter in CASES:
        operator, case = parameter.values
        for spec in specs_for(operator, case, sizes=((61, 83),)):
            yield from chain_of(operator, case).plan(spec).passes


def pixel_steps():
    """Every step on whole pixels that an operator takes."""
    found = (step for item in every_pass() for step in (*item.before, *item.after))
    return {step.functor: step for step in found if isinstance(step, Pixelwise)}.values()


def pattern_blocks():
    """The parameters of every pattern."""
    for module in pkgutil.iter_modules(cvcli.core.patterns.__path__):
        found = importlib.import_module(f"cvcli.core.patterns.{module.name}")
        yield getattr(found, f"{nvrtc.camel(module.name)}Params")


def layout_asserts():
    """Sizes and offsets of every block, as Python packs them."""
    lines = ""
    for block in (*BLOCKS, *pattern_blocks()):
        assert ctypes.sizeof(block) % 8 == 0 or block in BLOCKS
        name = f"cvcli::{block.__name__}"
        lines += asserted(f"sizeof({name}) == {ctypes.sizeof(block)}")
        lines += asserted(f"alignof({name}) == {ctypes.alignment(block)}")
        for field, kind in block._fields_:
            offset = getattr(block, field).offset
            lines += asserted(f"PLACE({name}, {field}) == {offset}")
            lines += asserted(f"sizeof({name}::{field}) == {ctypes.sizeof(kind)}")
    return lines


def functor_asserts():
    """A functor is its parameters and nothing else: floats on devices, doubles for tables."""
    lines = ""
    for step in pixel_steps():
        kind = step.functor.rpartition(".")[2]
        name = kind if "." in step.functor else nvrtc.camel(kind)
        lines += asserted(f"sizeof(cvcli::{name}) == {len(step.block())}")
    for operator in POINTWISE:
        for dtype in DTYPES:
            step = operator.step(**operator.cases[0]).lower(ImageSpec(1, 1, 1, dtype))
            name, count = nvrtc.camel(step.functor), len(step.params)
            assert len(step.block()) == 4 * count
            lines += asserted(f"sizeof(cvcli::{name}<float>) == {4 * count}")
            lines += asserted(f"sizeof(cvcli::{name}<double>) == {8 * count}")
    return lines


def geometry_asserts():
    lines = asserted(f"cvcli::kBlockThreads == {nvrtc.THREADS}")
    lines += asserted(f"cvcli::kBlockWarps == {geometry.WARPS}")
    lines += asserted(f"cvcli::kSegmentBytes == {geometry.SEGMENT_NBYTES}")
    for size in PIXELS:
        segment, tile = geometry.segment_pixels(size), geometry.tile_pixels(size)
        lines += asserted(f"cvcli::segment_pixels({size}) == {segment}")
        lines += asserted(f"cvcli::tile_pixels({size}) == {tile}")
    return lines


# NVRTC has no offsetof; its front end's own intrinsic does the same.
PLACE = """
#if defined(__CUDACC_RTC__)
#define PLACE(type, field) __INTADDR__(&((type*)0)->field)
#else
#define PLACE(type, field) offsetof(type, field)
#endif
"""
HEADERS = [path.relative_to(ROOT / "kernels") for path in (ROOT / "kernels").rglob("*.h")]
INCLUDES = PLACE + "".join(
    f'#include "{path.as_posix()}"\n'
    for path in [Path("core/map.h"), *sorted(HEADERS)]
    if path.parent.name in ("", "patterns") or path.name == "map.h"
)
ASSERTS = {"layout": layout_asserts, "functors": functor_asserts, "geometry": geometry_asserts}


def host_compiles(source):
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    assert compiler, "the build needs a C++ compiler, and so does this test"
    command = [compiler, "-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run(
        [*command, f"-I{ROOT / 'kernels'}", "-x", "c++", "-"],
        input=source,
        capture_output=True,
        text=True,
    )
    return done.returncode == 0


def nvrtc_compiles(source):
    try:
        return len(nvrtc.compile_source(nvrtc.expand(source), 75)) > 0
    except CompileError:
        return False


@pytest.mark.parametrize("compiles", (host_compiles, nvrtc_compiles), ids=("host", "nvrtc"))
@pytest.mark.parametrize("what", ASSERTS)
def test_both_sides_agree(what, compiles):
    lines = ASSERTS[what]()
    assert lines.count("static_assert") > 5
    assert compiles(INCLUDES + lines)


@pytest.mark.parametrize("compiles", (host_compiles, nvrtc_compiles), ids=("host", "nvrtc"))
def test_a_disagreement_is_seen(compiles):
    assert not compiles(
        INCLUDES + asserted(f"sizeof(cvcli::MapArgs) == {ctypes.sizeof(MapArgs) + 8}")
    )


def launch_of(kernel, count, height, width):
    sizes = {"count": count, "rows": count * height, "height": height, "width": width}
    return Launch(kernel=kernel, args=MapArgs(), params=(), nbytes=1, **sizes)


@pytest.mark.parametrize("size", ((1, 1), (1, 4000), (4000, 1), (61, 83), (45, 700), (130, 2049)))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_grid_covers_every_pixel(pattern, size):
    height, width = size
    for dtype, channels in product(DTYPES, CHANNELS):
        kernel, nbytes = Kernel(pattern, dtype, channels), ITEMSIZE[dtype] * channels
        side, segment = geometry.tile_pixels(nbytes), geometry.segment_pixels(nbytes)
        across, rows = (side, side) if pattern == "map_tiles" else (segment, geometry.WARPS)
        for many in (1, 3, 1000):
            x, y, z = geometry.grid_of(launch_of(kernel, many, height, width))
            assert (x - 1) * across < width <= x * across
            assert (y - 1) * rows < height <= y * rows
            assert z == many


def test_the_grid_keeps_the_hardware_limits():
    for pattern in PATTERNS:
        launch = launch_of(Kernel(pattern, "uint8", 1), 1 << 20, 1 << 30, 1)
        assert geometry.grid_of(launch) == (1, 65535, 65535)


def all_kernels():
    """Every pattern, dtype and channel count, moving and with a table or a functor.

    Functors meet patterns and both kinds of descriptors in turn: all of each with all would take
    minutes and show no more.
    """
    turn, functors = count(), cycle(op.name for op in POINTWISE)
    for pattern, dtype, channels in product(PATTERNS, DTYPES, CHANNELS):
        uniform = next(turn) % 2 == 0
        yield Kernel(pattern, dtype, channels, (), uniform)
        name = "table" if dtype != "float32" else next(functors)
        yield Kernel(pattern, dtype, channels, (name,), not uniform)


def features(kernel):
    """What a kernel shows to compile: pixel types, steps and templates of its pattern."""
    kinds = (kernel.dtype, kernel.channels), kernel.template, kernel.planar, kernel.moved
    steps = (step.name for step in (*kernel.before, *kernel.after))
    return {(kernel.pattern, kind) for kind in (*kinds, *steps)}


def pattern_kernels():
    """Kernels of every pattern that show all features of those the operators' cases use."""
    turn, seen = count(), set()
    for item in every_pass():
        if item.is_plain:
            continue
        kernel = kernel_of(item, uniform=next(turn) % 2 == 0)
        if features(kernel) - seen:
            seen |= features(kernel)
            yield kernel


def covering_kernels():
    """Every pattern, dtype, channel count, functor and kind of descriptors at least once."""
    yield Kernel("map_rows", "float32", 2, tuple(op.name for op in POINTWISE), False)
    yield Kernel("map_forward", "uint8", 3, ("table",))
    yield Kernel("map_mirrored", "float32", 1)
    yield Kernel("map_tiles", "uint16", 4, ("table",))


def compile_jobs():
    everything, several = list(all_kernels()), 8
    newest, oldest = nvrtc.ARCHITECTURES[-1], nvrtc.ARCHITECTURES[0]
    assert oldest == 75 and newest >= 120
    # The oldest has the least shared memory and the fewest instructions.
    for begin in range(0, len(everything), several):
        yield oldest, tuple(everything[begin : begin + several])
    for arch in nvrtc.ARCHITECTURES:
        yield arch, tuple(covering_kernels())
    # Every kernel of a pattern on one architecture, which differs from one to the next.
    for begin in range(0, len(patterns := list(pattern_kernels())), several):
        arch = nvrtc.ARCHITECTURES[begin // several % len(nvrtc.ARCHITECTURES)]
        yield arch, tuple(patterns[begin : begin + several])


def entries_in(job):
    """Compile the kernels of a job in one unit; return how many entry points the cubin has."""
    arch, kernels = job
    names = [f"{nvrtc.ENTRY}_{number:02}" for number in range(len(kernels))]
    sources = [
        nvrtc.source_of(kernel).replace(nvrtc.ENTRY, name)
        for kernel, name in zip(kernels, names, strict=True)
    ]
    code = nvrtc.compile_source(nvrtc.expand("".join(sources)), arch)
    return code[:4] == b"\x7fELF" and sum(name.encode() in code for name in names)


def test_every_kernel_compiles_for_every_architecture():
    jobs = list(compile_jobs())
    # NVRTC compiles one program at a time in a process, so there are two processes.
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=spawn) as pool:
        for job, found in zip(jobs, pool.map(entries_in, jobs), strict=True):
            assert found == len(job[1]), job


def test_a_gpu_newer_than_nvrtc_gets_ptx():
    code = nvrtc.compile_source(nvrtc.expand(nvrtc.source_of(INVERT)), 999)
    assert b".entry" in code and b".target sm_" in code


def test_errors_hold_the_log():
    with pytest.raises(CompileError, match=r"sm_80(.|\n)*not_a_type"):
        nvrtc.compile_source("not_a_type x;", 80)
    with pytest.raises(CompileError, match="sm_20"):
        nvrtc.compile_source("", 20)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CVCLI_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def headers(tmp_path, monkeypatch):
    """A copy of the kernels that may be edited."""
    folder = tmp_path / "kernels"
    shutil.copytree(ROOT / "kernels", folder)
    monkeypatch.setattr(nvrtc, "kernel_dir", lambda: folder)
    return folder


def key(kernel=INVERT, compute=(8, 0)):
    return nvrtc._entry(kernel, compute)[0].name


def edit(path: Path):
    path.write_text(path.read_text() + "// edited\n")


def test_key_follows_all_that_matters(headers, cache, monkeypatch):
    first = key()
    assert key() == first
    others = {key(compute=(7, 5)), key(Kernel("map_rows", "float32", 1, ("invert",)))}
    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "OPTIONS", (*nvrtc.OPTIONS, "--extra-device-vectorization"))
        others.add(key())
    with monkeypatch.context() as patch:
        patch.setattr(nvrtc, "nvrtc_version", lambda: "another")
        others.add(key())
    assert key() == first
    for name in ("invert.h", "core/platform.h", "core/geometry.h"):
        edit(headers / name)
        others.add(key())
    assert first not in others and len(others) == 7


def test_key_leaves_out_what_does_not_matter(headers, cache):
    first = key()
    edit(headers / "threshold.h")
    edit(headers / "cpu.cpp")
    assert key() == first


def test_a_second_call_reads_the_cache(cache, monkeypatch):
    code = nvrtc.cubin(INVERT, (7, 5))
    (path,) = cache.iterdir()
    assert path.read_bytes().endswith(code)
    monkeypatch.setattr(nvrtc, "compile_source", None)
    assert nvrtc.cubin(INVERT, (7, 5)) == code


COLD_OR_WARM = """
import sys
from pathlib import Path
from cvcli.devices import nvrtc
from cvcli.devices.base import Kernel
nvrtc.cubin(Kernel("map_rows", "float32", 3, ("invert",)), (7, 5))
print("nvrtc" in Path("/proc/self/maps").read_text(), "cupy_backends" in sys.modules)
"""


def test_a_warm_start_never_loads_nvrtc(cache):
    assert fresh_python(COLD_OR_WARM) == "True True"
    assert fresh_python(COLD_OR_WARM) == "False False"


def test_a_cache_that_can_not_be_written_only_costs_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("CVCLI_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert nvrtc.cubin(INVERT, (7, 5))[:4] == b"\x7fELF"
    assert (tmp_path / "file").read_text() == "in the way"


def test_a_store_that_fails_leaves_no_litter(cache, monkeypatch):
    def full(self, target):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    assert nvrtc.cubin(INVERT, (7, 5))[:4] == b"\x7fELF"
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("keep", (0, 1, 31, 32, 100, 4000, -1))
def test_a_truncated_cubin_is_made_anew(cache, keep):
    code = nvrtc.cubin(INVERT, (7, 5))
    (path,) = cache.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    assert nvrtc.cubin(INVERT, (7, 5)) == code
    assert path.read_bytes() == whole


def test_a_changed_cubin_is_made_anew(cache):
    code = nvrtc.cubin(INVERT, (7, 5))
    (path,) = cache.iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    assert nvrtc.cubin(INVERT, (7, 5)) == code
