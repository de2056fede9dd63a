"""The first promise: CPU and CUDA give the same bytes, whatever the operator, dtype and size."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import (
    CASES,
    CHANNELS,
    DTYPES,
    accepts,
    assert_same,
    chain_of,
    chains,
    images,
    noise,
    run,
    run_chain,
    run_ragged,
    specs_for,
    sprinkle,
    step_by_step,
    view,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import cvcli
from cvcli.core.spec import ImageSpec
from cvcli.ops import operators

pytestmark = pytest.mark.gpu
CUDA = "cuda:0"


@pytest.mark.parametrize("operator, case", CASES)
def test_fixed_sizes(operator, case):
    for spec in specs_for(operator, case):
        array = noise(spec.shape, spec.dtype)
        assert_same(run(operator, array, case, CUDA), run(operator, array, case))
        if spec.dtype == "float32":
            sprinkle(array)
            assert_same(run(operator, array, case, CUDA), run(operator, array, case))


@pytest.mark.parametrize("operator, case", CASES)
@given(data=st.data())
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
def test_random_sizes(operator, case, data):
    height, width = data.draw(st.tuples(st.integers(1, 200), st.integers(1, 2500)))
    kinds = {(spec.channels, spec.dtype) for spec in specs_for(operator, case)}
    channels, dtype = data.draw(st.sampled_from(sorted(kinds)))
    spec = ImageSpec(height, width, channels, dtype)
    if not accepts(operator, case, spec):
        spec = ImageSpec(height + 20, width + 20, channels, dtype)
    array = noise((data.draw(st.integers(1, 3)), *spec.shape), dtype)
    assert_same(run(operator, array, case, CUDA), run(operator, array, case))


@pytest.mark.parametrize("operator, case", CASES)
def test_rows_with_gaps(operator, case):
    """A view into a larger batch: rows start anywhere and lie further apart than packed."""
    for spec in specs_for(operator, case, sizes=((1, 1), (17, 11), (45, 700))):
        target = chain_of(operator, case).plan(spec).target
        if target.planar:
            continue
        whole = noise((spec.height + 2, spec.width + 5, spec.channels), spec.dtype)
        tensor = cvcli.as_tensor(whole).to(CUDA)
        at = tensor.strides[0] + 3 * tensor.strides[1]
        part = view(tensor, spec.shape, tensor.strides, at)
        packed = np.ascontiguousarray(whole[1:-1, 3:-2])
        assert_same(operator(part, **case).numpy(), run(operator, packed, case))
        # The result goes into a view too; what lies around it stays.
        frame = noise((target.height + 2, target.width + 3, target.channels), target.dtype, 5)
        room = cvcli.as_tensor(frame).to(CUDA)
        at = room.strides[0] + 2 * room.strides[1]
        out = view(room, target.shape, room.strides, at)
        operator(part, **case, out=out)
        frame[1:-1, 2:-1] = run(operator, packed, case)
        assert_same(room.numpy(), frame)


@given(data=st.data(), array=images(largest=150))
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_a_chain_of_five_equals_its_steps_on_both(data, array):
    steps = data.draw(chains(ImageSpec(*array.shape, array.dtype.name), least=5, most=5))
    wanted = step_by_step(steps, array)
    assert_same(run_chain(steps, array), wanted)
    assert_same(run_chain(steps, array, CUDA), wanted)


@given(data=st.data())
@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
def test_ragged_batches(data):
    channels, dtype = data.draw(st.sampled_from(CHANNELS)), data.draw(st.sampled_from(DTYPES))
    arrays, many = [], []
    for seed in range(data.draw(st.integers(2, 6))):
        height, width = data.draw(st.tuples(st.integers(1, 90), st.integers(1, 90)))
        arrays.append(noise((height, width, channels), dtype, seed))
        many.append(data.draw(chains(ImageSpec(height, width, channels, dtype), most=2)))
    pairs = zip(run_ragged(many, arrays, CUDA), run_ragged(many, arrays), strict=True)
    for cuda, cpu in pairs:
        assert_same(cuda, cpu)


@pytest.mark.parametrize(
    "name, case", (("flip", {"axis": -1}), ("rotate", {"angle": 90}), ("invert", {}))
)
def test_more_images_than_a_grid_is_deep(name, case):
    """70,000 images need more than the 65,535 blocks of the second grid axis."""
    array = noise((70_000, 3, 5, 1), "uint8")
    assert_same(run(name, array, case, CUDA), run(name, array, case))


def test_a_ragged_batch_of_more_images_than_a_grid_is_deep():
    arrays = [noise((1 + i % 3, 1 + i % 5, 1), "uint8", i % 7) for i in range(66_000)]
    (chain,) = (chain_of(op, {"axis": -1}) for op in operators() if op.name == "flip")
    got = run_ragged([chain] * len(arrays), arrays, CUDA)
    assert all((out == a[::-1, ::-1]).all() for out, a in zip(got, arrays, strict=True))


def large(side, dtype="uint8"):
    """A square image on the GPU of which every sample can be worked out from its place."""
    import cupy

    rows = cupy.arange(side, dtype=cupy.uint32)[:, None]
    array = cupy.empty((side, side, 1), dtype)
    for begin in range(0, side, 4096):
        part = rows[begin : begin + 4096] * cupy.uint32(2654435761)
        part = part + cupy.arange(side, dtype=cupy.uint32)[None] * cupy.uint32(40503)
        array[begin : begin + 4096, :, 0] = (part >> cupy.uint32(13)).astype(dtype)
    return array


@pytest.mark.parametrize(
    "name, case, wanted",
    (
        ("flip", {"axis": -1}, lambda a: a[::-1, ::-1]),
        ("rotate", {"angle": 90}, lambda a: a.swapaxes(0, 1)[::-1]),
        ("invert", {}, lambda a: 255 - a),
    ),
)
def test_an_image_past_two_to_the_31(name, case, wanted):
    import cupy

    side = 46_341
    assert side * side > 2**31
    array = large(side)
    out = cupy.asarray(getattr(cvcli, name)(cvcli.as_tensor(array), **case).cuda())
    expected = wanted(array)
    for corner in ((0, 0), (0, -1), (-1, 0), (-1, -1), (side // 2, side // 3)):
        assert int(out[corner][0]) == int(expected[corner][0])
    for begin in range(0, side, 4096):
        part = slice(begin, begin + 4096)
        assert bool((out[part] == expected[part]).all()), begin
    weights = cupy.arange(1, side + 1, dtype=cupy.uint64)[:, None]
    sums = [
        int((a[..., 0].sum(axis=1, dtype=cupy.uint64)[:, None] * weights).sum())
        for a in (out, expected)
    ]
    assert sums[0] == sums[1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_level_of_a_table_and_many_floats(dtype):
    """Pointwise results over all values a sample can take (every 997th float)."""
    if dtype == "float32":
        array = np.arange(0, 2**32, 997, np.uint32).view(np.float32)
    else:
        array = np.arange(np.iinfo(dtype).max + 1).astype(dtype)
    array = array[: array.size // 256 * 256].reshape(-1, 256, 1)
    for parameter in CASES:
        operator, case = parameter.values
        if accepts(operator, case, ImageSpec(*array.shape, dtype)):
            assert_same(run(operator, array, case, CUDA), run(operator, array, case))
