"""The ways that only a GPU takes: long rows, turned tiles in step with chunks, powers in doubles.

They run in the emulator, and with ``-m gpu`` on a GPU; the oracle is NumPy.
"""

from __future__ import annotations

import emulator
import numpy as np
import pytest
from conftest import GPU, noise

from cvcli.core.spec import ImageSpec
from cvcli.ops import parse_chain

TURNED = [("uint8", 1), ("uint8", 3), ("uint8", 4), ("uint16", 3)]
AFTER = {
    "channelreorder --order 2,1,0": lambda image: image[..., ::-1],
    "reformat --layout planar": lambda image: np.moveaxis(image, -1, 1),
}
TWIST = "color-twist --matrix '0.5,0,0,0;0,3,0,-300;0,0,-1.5,200.5'"


@pytest.fixture(params=[emulator.NAME, GPU])
def run(request):
    """Run a chain on a batch."""
    return lambda text, array: emulator.emulate(parse_chain(text), array, request.param)


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    """Everything is compiled ahead, many kernels in a unit."""
    texts = [(f"rotate --angle {angle}", *kind) for angle in (90, -90) for kind in TURNED]
    texts += [(f"rotate --angle 90 | {text}", "uint8", 3) for text in AFTER]
    texts += [("cvtcolor --code rgb2gray", "uint8", channels) for channels in (3, 4)]
    texts += [(TWIST, "uint8", 3), (TWIST, "uint16", 4), ("gamma-contrast --gamma 2", "float32", 1)]
    plans = [parse_chain(text).plan(ImageSpec(48, 80, n, dtype)) for text, dtype, n in texts]
    emulator.compile_all(list(emulator.kernels_of(plans, uniform=True)))


@pytest.mark.parametrize("dtype, channels", TURNED)
def test_tiles_turn(run, dtype, channels):
    """Rows begin in step with chunks or within one, tiles are whole or not."""
    for height, width in ((48, 80), (144, 176), (136, 112)):
        images = noise((2, height, width, channels), dtype)
        for angle, times in ((90, 1), (-90, -1)):
            turned = run(f"rotate --angle {angle}", images)
            np.testing.assert_array_equal(turned, np.rot90(images, times, (1, 2)))


@pytest.mark.parametrize("text", AFTER)
def test_rows_with_gaps_and_without(run, text):
    """Between launches rows are padded to chunks, so the width says whether there are gaps."""
    for size in ((61, 83), (64, 96), (17, 530), (700, 5)):
        images = noise((2, *size, 3), "uint8")
        wanted = AFTER[text](np.rot90(images, 1, (1, 2)))
        np.testing.assert_array_equal(run(f"rotate --angle 90 | {text}", images), wanted)


@pytest.mark.parametrize("channels", (3, 4))
def test_gray_is_the_rounded_sum(run, channels):
    images = noise((2, 33, 1040, channels), "uint8")
    images[0, :8] = 255
    red, green, blue = (images[..., c].astype(np.int64) for c in range(3))
    gray = run("cvtcolor --code rgb2gray", images)
    np.testing.assert_array_equal(
        gray[..., 0], (red * 9798 + green * 19235 + blue * 3735 + 16384) >> 15
    )
    if channels == 4:
        np.testing.assert_array_equal(gray[..., 1], images[..., 3])


@pytest.mark.parametrize("dtype, channels", (("uint8", 3), ("uint16", 4)))
def test_sums_round_half_to_even_and_saturate(run, dtype, channels):
    images = noise((2, 33, 70, channels), dtype)
    values = images[..., :3] * np.array([0.5, 3, -1.5]) + np.array([0, -300, 200.5])
    wanted = np.clip(np.rint(values), 0, np.iinfo(dtype).max)
    twisted = run(TWIST, images)
    np.testing.assert_array_equal(twisted[..., :3], wanted)
    np.testing.assert_array_equal(twisted[..., 3:], images[..., 3:])


def test_powers_next_to_a_half_are_rounded_right(run):
    """Squares of n / 8192 lie halfway between floats, or next to that after the next float."""
    exact = np.arange(1, 8192, 2, dtype=np.float32) / 8192
    near = np.nextafter(exact, np.float32(1))
    values = np.concatenate([exact, near, np.random.default_rng(0).random(4096)])
    images = values.astype(np.float32).reshape(1, 96, 128, 1)
    wanted = (images.astype(np.float64) ** 2).astype(np.float32)
    np.testing.assert_array_equal(run("gamma-contrast --gamma 2", images), wanted)


@pytest.mark.parametrize("gain, gamma", ((0, 10), (0, 2), (1e-38, 0.5), (3e38, 16), (40, 10)))
def test_powers_of_any_gain_are_what_the_double_is(run, gain, gamma):
    values = np.concatenate([np.geomspace(1e-44, 3e38, 12000), [0, -1, np.inf, 1, 0.5]])
    images = np.resize(values, (1, 96, 128, 1)).astype(np.float32)
    base = np.maximum(images.astype(np.float64), 0)
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        wanted = (float(np.float32(gain)) * base ** float(np.float32(gamma))).astype(np.float32)
    found = run(f"gamma-contrast --gamma {gamma} --gain {gain}", images)
    assert np.array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_array_max_ulp(*(np.nan_to_num(x, nan=0.0) for x in (found, wanted)), 1)
