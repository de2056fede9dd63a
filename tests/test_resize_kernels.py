"""The kernels of resize: blocks agree, all kinds compile, and a GPU gives the CPU's bytes."""

from __future__ import annotations

import ctypes

import emulator
import numpy as np
import pytest
from conftest import CHANNELS, DTYPES, assert_same, noise, run_chain, run_ragged
from test_kernels import PLACE, asserted, host_compiles, nvrtc_compiles

from cvcli.core.kernels import kernel_of
from cvcli.core.patterns.resample import ResampleAxis, ResampleParams
from cvcli.core.spec import ImageSpec
from cvcli.devices import nvrtc
from cvcli.ops import parse_chain

CUDA = "cuda:0"
SHARED = 48 << 10


def layout_asserts():
    lines = PLACE + '#include "core/patterns/resample.h"\n'
    for block in (ResampleAxis, ResampleParams):
        name = f"cvcli::{block.__name__}"
        lines += asserted(f"sizeof({name}) == {ctypes.sizeof(block)}")
        for field, _ in block._fields_:
            lines += asserted(f"PLACE({name}, {field}) == {getattr(block, field).offset}")
    return lines


@pytest.mark.parametrize("compiles", (host_compiles, nvrtc_compiles), ids=("host", "nvrtc"))
def test_blocks_agree(compiles):
    lines = layout_asserts()
    assert compiles(lines)
    assert not compiles(lines + asserted("sizeof(cvcli::ResampleAxis) == 1"))


def kinds():
    """Plans that take every schedule, each with other pixels, steps and descriptors."""
    yield "resize 50% --filter box", 3, "uint8", (1080, 1920)
    yield "flip --axis 1 | resize 50% --filter box | invert", 1, "uint8", (64, 64)
    yield "resize 224x224! --antialias off | reformat --layout planar", 3, "uint8", (1080, 1920)
    yield "resize 224x224! --filter lanczos", 3, "uint8", (1080, 1920)
    yield "resize 200% --filter bicubic", 3, "uint8", (1080, 1920)
    yield "flip --axis 1 | resize 200% | reformat --layout planar", 4, "uint8", (64, 64)
    yield "resize 37%", 4, "uint8", (300, 500)
    yield "flip --axis 0 | resize 37% | channelreorder --order 0", 2, "uint8", (300, 500)
    yield "resize 70% --filter hamming", 1, "uint16", (300, 500)
    yield "resize 224x224!", 4, "float32", (1080, 1920)
    yield "resize 1x1! --filter lanczos", 3, "uint16", (1080, 1920)
    yield "gamma-contrast --gamma 2 | resize 50% | reformat --layout planar", 2, "float32", (99, 99)


def kernels(text, channels, dtype, size):
    plan = parse_chain(text).plan(ImageSpec(*size, channels, dtype))
    return [kernel_of(item, uniform=len(text) % 2 == 0) for item in plan.passes]


def test_all_kinds_compile():
    templates, arch = set(), 0
    for kind in kinds():
        for kernel in kernels(*kind):
            templates.add(len(kernel.template))
            target = (75, 90, 120)[arch % 3]
            arch += 1
            # Too much shared memory for a block is an error of the compiler's.
            code = nvrtc.compile_source(nvrtc.expand(nvrtc.source_of(kernel)), target)
            assert code[:4] == b"\x7fELF"
    assert templates == {0, 1, 4, 6}


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("factor", (0.9, 1.7, 4, 9, 30))
@pytest.mark.parametrize("name", ("box", "bilinear", "lanczos"))
def test_tiles_fit_shared_memory(channels, factor, name):
    """As the kernels lay it out; what does not fit goes point by point."""
    size = round(1000 / factor)
    for dtype in ("uint8", "float32"):
        text = f"resize {size}x{size}! --filter {name}"
        for kernel in kernels(text, channels, dtype, (1000, 1000)):
            if len(kernel.template) == 4:
                width, height, _, used = kernel.template
            elif len(kernel.template) == 6:
                width, height, span, rows, batch, taps = kernel.template
                used = 4 * (batch * span * channels + rows * width * channels + taps * width)
            else:
                continue
            assert used <= SHARED and kernel.tile == (width, height)
        # Common factors are tiled whatever the filter.
        assert factor > 4 or kernel.template


CHAINS = (
    "resize 50% --filter box",
    "resize 50%",
    "resize 37x210!",
    "resize 71% --filter lanczos",
    "resize 230% --filter bicubic",
    "resize 300x7! --filter hamming",
    "resize 31x17! --antialias off",
    "resize 1x1!",
    "resize 90% --filter nearest",
    "flip --axis -1 | resize 45% --filter lanczos | invert",
    "flip --axis 1 | resize 50% --filter box | crop --x 3 --y 5 --width 20 --height 11",
    "pad --left 5 --top 9 --border wrap | resize 60% | reformat --layout planar",
    "resize 120% | crop --x 13 --y 5 --width 101 --height 57",
)

# Parts of them begin at odd rows and columns, and end where a warp's part does and one after.
DOUBLED = (
    "resize 200% --filter bicubic",
    "resize 200% | crop --x 3 --y 5 --width 255 --height 39",
    "flip --axis -1 | resize 200% --filter bicubic | crop --x 1 --y 1 --width 256 --height 32",
    "flip --axis 1 | resize 200% --filter bicubic | reformat --layout planar",
)


@pytest.mark.parametrize("text", DOUBLED)
@pytest.mark.parametrize("channels", CHANNELS)
def test_doubled_images_are_the_same_bytes_in_the_emulator(text, channels):
    for size in ((37, 131), (8, 8)) if "crop" not in text else ((45, 131),):
        plan = parse_chain(text).plan(ImageSpec(*size, channels, "uint8"))
        assert plan.passes[-1].pattern.template == (2,)
        # Black and white overshoot most.
        batch = noise((2, *size, channels), "uint8")
        emulator.compare(text, batch)
        emulator.compare(text, batch // 128 * 255)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "text, channels",
    [
        ("resize 50% --antialias off", 3),
        ("resize 50% --antialias off | crop --x 3 --y 5 --width 68 --height 5", 4),
        ("flip --axis -1 | resize 50% --filter box | reformat --layout planar", 2),
    ],
)
def test_halved_images_are_the_same_bytes_in_the_emulator(text, channels, dtype):
    plan = parse_chain(text).plan(ImageSpec(22, 150, channels, dtype))
    assert plan.passes[0].pattern.template == (-2,)
    array = noise((22, 150, channels), dtype)
    array.flat[:9] = 0 if dtype != "float32" else np.nan
    emulator.compare(text, array)


@pytest.mark.gpu
@pytest.mark.parametrize("text", CHAINS + DOUBLED[:1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("channels", CHANNELS)
def test_a_gpu_gives_the_same_bytes(text, dtype, channels):
    chain = parse_chain(text)
    for size in ((150, 202), (61, 333)):
        batch = noise((2, *size, channels), dtype)
        assert_same(run_chain(chain, batch, CUDA), run_chain(chain, batch))


@pytest.mark.gpu
def test_huge_factors_on_a_gpu():
    for shape in ((4000, 3, 3), (3, 4000, 3), (2000, 1500, 1)):
        for dtype in DTYPES:
            array = noise(shape, dtype)
            for text in ("resize 1x1! --filter lanczos", "resize 5x2!"):
                chain = parse_chain(text)
                assert_same(run_chain(chain, array, CUDA), run_chain(chain, array))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_ragged_batch_on_a_gpu(dtype):
    rng = np.random.default_rng(7)
    arrays = [noise((*map(int, rng.integers(1, 300, 2)), 3), dtype, seed) for seed in range(16)]
    for text in ("resize 64x64!", "resize 50%", "resize 150% --filter lanczos"):
        chains = [parse_chain(text)] * len(arrays)
        pairs = zip(run_ragged(chains, arrays, CUDA), run_ragged(chains, arrays), strict=True)
        for cuda, cpu in pairs:
            assert_same(cuda, cpu)


@pytest.mark.parametrize("channels", CHANNELS)
def test_gathers_and_steps_on_the_way_in_are_the_same_bytes_in_the_emulator(channels):
    """Groups of pixels are loaded by words, forwards and backwards, where a run holds them."""
    array = noise((1, 90, 203, channels), "uint8")
    for lead in ("flip --axis 1", "flip --axis -1 | invert", "pad --left 7 --top 3 --border wrap"):
        emulator.compare(f"{lead} | resize 44x47! --filter bicubic", array)
        emulator.compare(f"crop --x 3 --width 190 --height 80 | {lead} | resize 50%", array)
