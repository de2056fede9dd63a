"""Shared by the tests: the hypothesis profile, devices, images and parameters to try."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st

import cvcli
from cvcli.core.apply import apply
from cvcli.core.chain import Chain
from cvcli.core.engine import engine_of
from cvcli.core.images import pack, packed_nbytes
from cvcli.core.launch import run_plans
from cvcli.core.move import Move
from cvcli.core.pointwise import Pointwise
from cvcli.core.spec import ImageSpec
from cvcli.core.stream import stream_for
from cvcli.core.tensor import Tensor, form_of
from cvcli.devices import open_device
from cvcli.errors import ParameterError
from cvcli.ops import operator_named, operators

# The same examples everywhere and no time limit an example: a slow machine must not fail a test.
settings.register_profile("cvcli", derandomize=True, deadline=None, database=None)
settings.load_profile("cvcli")

# Child processes must run the installed package, not the checkout they may be started in.
os.environ["PYTHONSAFEPATH"] = "1"
ROOT = Path(__file__).resolve().parent.parent
DTYPES = ("uint8", "uint16", "float32")
CHANNELS = (1, 2, 3, 4)
# One pixel, one row, one column, odd sizes, and one past a tile and a segment of a row; most have
# rows that are no multiple of 4 bytes for some pixel size.
SIZES = ((1, 1), (1, 37), (29, 1), (3, 5), (17, 11), (61, 83), (45, 700))
GPU = pytest.param("cuda:0", marks=pytest.mark.gpu)
CASES = [
    pytest.param(op, case, id=f"{op.name}-{number}")
    for op in operators()
    for number, case in enumerate(op.cases)
]


@pytest.fixture(params=["cpu", GPU])
def device(request):
    """Each test that asks for it runs on the CPU, and with ``-m gpu`` on a GPU that must exist."""
    return request.param


def noise(shape, dtype, seed=0):
    """Random samples over the whole integer range; floats from a little below 0 to above 1."""
    rng = np.random.default_rng([seed, *shape])
    if dtype == "float32":
        return rng.random(shape, np.float32) * np.float32(1.5) - np.float32(0.25)
    return rng.integers(0, np.iinfo(dtype).max, shape, dtype, endpoint=True)


def specs_for(operator, case, sizes=SIZES, channels=CHANNELS, dtypes=DTYPES):
    """Every kind of image that the case accepts; at least one of all kinds must suit it."""
    wanted = [ImageSpec(h, w, c, d) for d, c, (h, w) in product(dtypes, channels, sizes)]
    fitting = [spec for spec in wanted if accepts(operator, case, spec)]
    everything = (channels, dtypes) == (CHANNELS, DTYPES)
    assert fitting or not everything, "the case suits none of the sizes"
    return fitting


def every(operator, case, **limits):
    """Pairs of a spec and an image of it."""
    for spec in specs_for(operator, case, **limits):
        yield spec, noise(spec.shape, spec.dtype)


def spread(array, gap, layout="HWC", fill=0xA5):
    """A copy whose rows lie ``gap`` bytes apart and start off alignment, and its whole memory."""
    size, (height, width, channels) = array.itemsize, array.shape
    if layout == "CHW":
        channels, height, width = array.shape
    row = width * size * (1 if layout == "CHW" else channels)
    rows = height * channels if layout == "CHW" else height
    memory = np.full(rows * (row + gap) + gap, fill, np.uint8)
    strides = (row + gap, channels * size, size)
    if layout == "CHW":
        strides = (height * (row + gap), row + gap, size)
    view = np.ndarray(array.shape, array.dtype, memory, gap, strides)
    view[...] = array
    return view, memory


def sure(operator, case):
    """An image that the case suits, RGB of 8 bits if that does."""
    fitting = specs_for(operator, case, sizes=((61, 83),))
    fitting.sort(key=lambda spec: (spec.dtype != "uint8", spec.channels != 3))
    return noise(fitting[0].shape, fitting[0].dtype)


def planned(operator, case, array):
    """The spec of the result."""
    return chain_of(operator, case).plan(ImageSpec(*array.shape, array.dtype.name)).target


def tensor(array, layout="HWC"):
    return cvcli.as_tensor(array, layout)


def accepts(operator, case, spec):
    try:
        chain_of(operator, case).plan(spec)
    except ParameterError:
        return False
    return True


def chain_of(operator, case):
    return Chain((operator.step(**case),))


def lowered(operator, case):
    """What a case is on the first kind of image that it accepts."""
    spec = specs_for(operator, case)[-1]
    return operator.step(**case).lower(spec)


def is_pointwise(operator, case):
    return isinstance(lowered(operator, case), Pointwise)


def is_move(operator, case):
    return isinstance(lowered(operator, case), Move)


def view(tensor, shape, strides, offset=0):
    """A part of an ``HWC`` tensor, in the same memory."""
    form = form_of(tuple(shape), tensor.dtype.name, "HWC", tuple(strides))
    return Tensor(tensor.buffer, form, offset)


def bits(array):
    """Raw bytes as unsigned integers, so that NaNs and signed zeros are told apart."""
    array = np.ascontiguousarray(array)
    return array.view(f"u{array.dtype.itemsize}")


def assert_same(got, wanted):
    assert got.dtype == wanted.dtype and got.shape == wanted.shape
    np.testing.assert_array_equal(bits(got), bits(wanted))


def run(operator, array, case, device="cpu", **kwargs):
    """One operator, or the one of a name, on an array, on a device; the result as an array."""
    operator = operator_named(operator) if isinstance(operator, str) else operator
    return operator(cvcli.as_tensor(array).to(device), **case, **kwargs).numpy()


def run_chain(chain, array, device="cpu"):
    return apply(chain, cvcli.as_tensor(array).to(device)).numpy()


def step_by_step(chain, array, device="cpu"):
    """The same, one launch or more a step."""
    tensor = cvcli.as_tensor(array).to(device)
    for step in chain:
        tensor = apply(Chain((step,)), tensor)
    return tensor.numpy()


def run_ragged(chains, arrays, device="cpu"):
    """Arrays of any sizes, each with its own chain, as one ragged batch."""
    engine = engine_of(device)
    stream = stream_for(engine.device, None)
    specs = [ImageSpec(*array.shape, array.dtype.name) for array in arrays]
    plans = [chain.plan(spec) for chain, spec in zip(chains, specs, strict=True)]
    src = pack(engine.allocate(packed_nbytes(specs)), specs)
    staging = pack(engine.allocate_staging(packed_nbytes(specs)), specs)
    for array, placed in zip(arrays, staging.placed(), strict=True):
        host(staging, placed)[...] = array
    engine.copy(src.buffer, staging.buffer, packed_nbytes(specs), stream)
    targets = [plan.target for plan in plans]
    dst = pack(engine.allocate(packed_nbytes(targets)), targets)
    run_plans(engine, src, dst, plans, stream)
    back = pack(engine.allocate_staging(packed_nbytes(targets)), targets)
    engine.copy(back.buffer, dst.buffer, packed_nbytes(targets), stream)
    back.buffer.synchronize()
    return [host(back, placed).copy() for placed in back.placed()]


def host(images, placed):
    """An image in host memory as an array."""
    import ctypes

    raw = (ctypes.c_char * placed.spec.nbytes).from_address(images.buffer.pointer + placed.offset)
    return np.frombuffer(raw, placed.spec.dtype).reshape(placed.spec.shape)


def fresh_python(code, **environment):
    """Run code in a new process and return what it printed."""
    # An empty entry would be the working folder.
    paths = os.pathsep.join(filter(None, [str(ROOT / "tests"), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": paths, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


HOLD = r"""
extern "C" __global__ void hold(volatile int* open, unsigned long long limit) {
    unsigned long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do {
        asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    } while (!*open && now - begin < limit);
}
"""


@cache
def gpu_gate():
    """A kernel that runs until an integer in host memory is set, at most two seconds."""
    import cupy

    kernel = cupy.RawKernel(HOLD, "hold")

    def hold(stream, flag):
        with cupy.cuda.Stream.from_external(stream):
            kernel((1,), (1,), (np.uint64(flag.ctypes.data), np.uint64(2_000_000_000)))

    # It is loaded here, which may wait for the device.
    hold(cvcli.Stream("cuda:0"), opened := gpu_flag(1))
    cupy.cuda.Device().synchronize()
    del opened
    return hold


def gpu_flag(value):
    import cupy

    memory = cupy.cuda.alloc_pinned_memory(4)
    flag = np.frombuffer(memory, np.int32, 1)
    flag[0] = value
    return flag


@contextmanager
def held(*streams):
    """Keep streams busy until the block ends; on a GPU for two seconds at most."""
    gate, on_gpu = threading.Event(), [stream for stream in streams if stream.device != "cpu"]
    flag = gpu_flag(0) if on_gpu else [0]
    for stream in streams:
        if stream.device == "cpu":
            open_device("cpu")._streams[stream.handle].put(gate.wait)
        else:
            gpu_gate()(stream, flag)
    try:
        yield
        assert not any(stream.query() for stream in streams), "it was not held at all"
    finally:
        gate.set()
        flag[0] = 1
        # The kernel reads the flag's memory to the end.
        for stream in on_gpu:
            stream.sync()


KINDS = {"integer", "number", "choice", "level", "color"}


def value_of(parameter, top):
    """Strategy of valid values of one parameter, numbers in the units of an image."""
    assert parameter.kind in KINDS
    low, high = parameter.param.min, parameter.param.max
    levels = st.one_of(
        st.floats(-0.5 * top, 1.5 * top),
        st.integers(-20, 120).map(lambda share: f"{share}%"),
    )
    if parameter.kind == "integer":
        first = -3 if low is None else int(low)
        return st.integers(first, first + 20 if high is None else int(min(high, first + 20)))
    if parameter.kind == "number":
        return st.floats(-3 if low is None else low, 3 if high is None else min(high, 3.0))
    if parameter.kind == "choice":
        return st.sampled_from(parameter.choices)
    if parameter.kind == "level":
        return levels
    return st.one_of(levels, st.lists(levels, min_size=4, max_size=4).map(tuple))


@st.composite
def params_for(draw, operator, spec):
    """Valid parameters of an operator for an image; what depends on its size is drawn by hand."""
    if operator.name == "crop":
        height, width = draw(st.integers(1, spec.height)), draw(st.integers(1, spec.width))
        if draw(st.booleans()):
            (gravity,) = (p for p in operator.parameters if p.name == "gravity")
            return {"height": height, "width": width, "gravity": draw(value_of(gravity, 1))}
        y, x = draw(st.integers(0, spec.height - height)), draw(st.integers(0, spec.width - width))
        return {"height": height, "width": width, "x": x, "y": y}
    if operator.name == "rotate" and draw(st.booleans()):
        return {"angle": 90 * draw(st.integers(-5, 5))}
    if not _is_free(operator):
        return draw(st.sampled_from(suited(operator, spec)))
    given = {p.name: value_of(p, spec.top) for p in operator.parameters if p.required}
    free = {p.name: value_of(p, spec.top) for p in operator.parameters if not p.required}
    return draw(st.fixed_dictionaries(given, optional=free))


def _is_free(operator):
    """Whether any values of its parameters suit any image."""
    if any(p.kind not in KINDS or p.param.unit == "px" for p in operator.parameters):
        return operator.name == "pad"
    return all(is_pointwise(operator, case) or is_move(operator, case) for case in operator.cases)


def suited(operator, spec):
    """The cases of an operator that suit an image and don't blow it up."""
    if operator.name == "crop":
        return [] if spec.planar else [{"width": 1, "height": 1}]
    return [case for case in operator.cases if _suits(operator, case, spec)]


def _suits(operator, case, spec):
    try:
        return chain_of(operator, case).plan(spec).target.nbytes <= max(1 << 19, spec.nbytes)
    except ParameterError:
        return False


@st.composite
def images(draw, largest=40):
    """A random image of any dtype and channel count, special floats now and then."""
    shape = draw(st.integers(1, largest)), draw(st.integers(1, largest)), draw(st.integers(1, 4))
    array = noise(shape, draw(st.sampled_from(DTYPES)), draw(st.integers(0, 99)))
    if array.dtype == np.float32 and draw(st.booleans()):
        sprinkle(array)
    return array


def sprinkle(array):
    """Put NaNs of several kinds, infinities, zeros, subnormals and huge values into floats."""
    special = np.array(
        [0x7F800001, 0xFFC12345, 0x7FC00000, 0x7F800000, 0xFF800000, 0x80000000, 0, 1]
        + [0x80000001, 0x007FFFFF, 0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0x3F000000],
        np.uint32,
    )
    raw = array.reshape(-1).view(np.uint32)
    raw[::3] = np.resize(special, raw[::3].shape)
    return array


@st.composite
def chains(draw, spec, most=8, least=1):
    """A chain of random operators with random parameters that suits an image."""
    steps = []
    for _ in range(draw(st.integers(least, most))):
        operator = draw(st.sampled_from([op for op in operators() if suited(op, spec)]))
        step = operator.step(**draw(params_for(operator, spec)))
        spec = Chain((step,)).plan(spec).target
        steps.append(step)
    return Chain(tuple(steps))
