"""Filters among other steps, on parts of images, in ragged batches, on special floats."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from conftest import CHANNELS, DTYPES, assert_same, bits, noise, run, run_ragged, sprinkle

import cvcli
from cvcli.core.apply import apply
from cvcli.core.chain import Chain
from cvcli.core.spec import ImageSpec
from cvcli.ops import operator_named, parse_chain

SIZES = ((1, 1), (1, 37), (29, 1), (3, 5), (17, 11), (61, 83), (70, 101))
STEPS = (
    ("gaussian", {"size": (5, 7), "sigma": 1.1}),
    ("gaussian", {"size": 19}),
    ("sharpen", {"amount": 2, "sigma": 0.7}),
    ("averageblur", {"size": (9, 3)}),
    ("averageblur", {"size": 17, "border": "wrap"}),
    ("laplacian", {"ksize": 3, "border": "constant", "value": "30%"}),
    ("conv2d", {"kernel": [[0.1, 0.2, 0.1], [0, -0.5, 0], [0.3, 0.2, 0.6]]}),
    ("conv2d", {"kernel": [[0.03 * (x - y) for x in range(9)] for y in range(7)]}),
    ("adjust_sharpness", {"factor": 2.5}),
    ("morphology", {"operation": "dilate", "size": 5}),
    ("morphology", {"operation": "erode", "size": (3, 13), "border": "wrap"}),
    ("bilateral_filter", {"diameter": 5, "sigma_color": 0.4}),
    ("bilateral_filter", {"diameter": 11, "sigma_color": 30}),
)
AROUND = (
    ("flip --axis -1 | pad --left 3 --top 2 --value 40%", "crop --width 9 --height 8 --x 2 --y 3"),
    ("invert | channelreorder --order 2,0,1", "gamma-contrast --gamma 0.6 | flip --axis 1"),
    (
        "crop --width 13 --height 11 --x 1 --y 4 | gamma-contrast --gamma 2",
        "channelreorder --order 1",
    ),
    ("rotate --angle 90", "reformat --layout planar"),
    ("reformat --layout planar | reformat --layout interleaved", "rotate --angle 270"),
)


def run_layout(chain, array, device):
    """A chain on an array, or on one of planes where that is in a tuple; its result likewise."""
    planar = isinstance(array, tuple)
    tensor = cvcli.as_tensor(array[0] if planar else array, "CHW" if planar else "HWC").to(device)
    out = apply(chain, tensor)
    return (out.numpy(),) if out.layout == "CHW" else out.numpy()


def stepwise(words, array, device):
    for step in parse_chain(words):
        array = run_layout(Chain((step,)), array, device)
    return array


@pytest.mark.parametrize("before, after", AROUND)
@pytest.mark.parametrize("name, case", STEPS)
def test_a_chain_equals_its_steps(name, case, before, after, device):
    words = f"{before} | {operator_named(name).step(**case)} | {after}"
    for dtype, size in product(DTYPES, ((17, 21), (61, 83))):
        array = noise((*size, 3), dtype)
        got = run_layout(parse_chain(words), array, device)
        wanted = stepwise(words, array, device)
        assert isinstance(got, tuple) == isinstance(wanted, tuple)
        assert_same(*(a[0] if isinstance(a, tuple) else a for a in (got, wanted)))


@pytest.mark.parametrize("name, case", STEPS)
def test_neighbours_are_one_launch(name, case):
    step = operator_named(name).step(**case)
    words = (
        f"flip --axis 1 | invert | {step} | gamma-contrast --gamma 2 | crop --width 9 --height 8"
    )
    plan = parse_chain(words).plan(ImageSpec(61, 83, 3, "uint8"))
    (only,) = plan.passes
    # A crop afterwards makes less work.
    assert only.pattern is not None and only.pattern.extent == (9, 8)


@pytest.mark.parametrize("name, case", STEPS)
def test_windows_are_parts_of_the_whole(name, case, device):
    step = operator_named(name).step(**case)
    for dtype in DTYPES:
        array = noise((130, 200, 3), dtype)
        whole = run(name, array, case, device)
        for x, y, width, height in (
            (0, 0, 200, 130),
            (7, 3, 1, 1),
            (33, 65, 101, 64),
            (199, 0, 1, 130),
        ):
            crop = f"crop --width {width} --height {height} --x {x} --y {y}"
            got = run_layout(parse_chain(f"{step} | {crop}"), array, device)
            assert_same(got, whole[y : y + height, x : x + width])


@pytest.mark.parametrize("name, case", STEPS)
def test_special_floats_give_a_defined_result(name, case, device):
    array = noise((61, 83, 3), "float32")
    sprinkle(array)
    got = run(name, array, case, device)
    assert set(np.unique(bits(got[np.isnan(got)]))) <= {0x7FC00000}
    # Far from them nothing changes.
    calm = noise((61, 83, 3), "float32")
    wild = calm.copy()
    wild[:20] = np.inf
    wild[0] = np.nan
    same = slice(20 + 10, -10)
    assert_same(run(name, wild, case, device)[same], run(name, calm, case, device)[same])


@pytest.mark.parametrize("name, case", STEPS)
def test_ragged_equals_one_by_one(name, case, device):
    chain = parse_chain(str(operator_named(name).step(**case)))
    for dtype, channels in product(DTYPES, (1, 3)):
        arrays = [noise((*size, channels), dtype) for size in SIZES]
        for got, array in zip(
            run_ragged([chain] * len(arrays), arrays, device), arrays, strict=True
        ):
            assert_same(got, run(name, array, case, device))


@pytest.mark.gpu
@pytest.mark.parametrize("name, case", STEPS)
def test_devices_agree_past_a_tile(name, case):
    for dtype, channels, size in product(DTYPES, CHANNELS, ((131, 517), (64, 96), (257, 33))):
        array = noise((*size, channels), dtype)
        assert_same(run(name, array, case, "cuda:0"), run(name, array, case))


@pytest.mark.gpu
@pytest.mark.parametrize("radius", range(1, 9))
def test_devices_agree_on_every_radius(radius):
    for dtype, channels in product(DTYPES, CHANNELS):
        array = noise((97, 131, channels), dtype)
        for name, size in product(
            ("gaussian", "averageblur"), ((2 * radius + 1, 3), (1, 2 * radius + 1))
        ):
            assert_same(
                run(name, array, {"size": size}, "cuda:0"), run(name, array, {"size": size})
            )
