"""Medians: against OpenCV and NumPy, of every size and dtype."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from conftest import DTYPES, assert_same, noise, run, run_chain, run_ragged, sprinkle, step_by_step
from hypothesis import given, settings
from hypothesis import strategies as st

import cvcli
from cvcli.errors import ParameterError
from cvcli.ops import parse_chain

# OpenCV takes 1, 3 and 4 channels.
SHAPES = ((1, 1, 1), (1, 40, 3), (40, 1, 3), (5, 7, 3), (17, 11, 4), (61, 83, 3), (70, 200, 1))


def sorted_median(array, size):
    """By dividing every window in two, edges repeated."""
    r = size // 2
    padded = np.pad(array, ((r, r), (r, r), (0, 0)), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (0, 1))
    middle = size * size // 2
    return np.partition(windows.reshape(*array.shape, -1), middle, axis=-1)[..., middle]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", (3, 5))
def test_small_ones_are_opencv(size, dtype):
    for shape in SHAPES:
        array = noise(shape, dtype)
        wanted = cv2.medianBlur(array, size).reshape(shape)
        assert_same(run("median_blur", array, {"size": size}), wanted)


@pytest.mark.parametrize("size", range(7, 32, 2))
def test_large_ones_are_opencv(size):
    for shape in SHAPES:
        for array in (noise(shape, "uint8"), noise(shape, "uint8") // 32 * 30):
            wanted = cv2.medianBlur(array, size).reshape(shape)
            assert_same(run("median_blur", array, {"size": size}), wanted)


@pytest.mark.parametrize("dtype", ("uint16", "float32"))
@pytest.mark.parametrize("size", (7, 15, 31))
def test_large_ones_of_other_depths(size, dtype):
    for shape in SHAPES[:5]:
        array = noise(shape, dtype)
        assert_same(run("median_blur", array, {"size": size}), sorted_median(array, size))


@pytest.mark.parametrize("dtype", ("uint16", "float32"))
@pytest.mark.parametrize("size", (7, 17, 31))
def test_more_than_a_tile_of_other_depths(size, dtype):
    """Results on both sides of what is put in order at once, of noise and of few values."""
    plain = noise((71, 97, 2), dtype)
    few = plain // 16384 if dtype == "uint16" else np.round(plain) + np.float32(0)  # no -0
    slope = np.arange(71 * 97 * 2).reshape(71, 97, 2).astype(dtype)
    for array in (plain, few, slope):
        wanted = sorted_median(array, size)
        assert_same(run("median_blur", array, {"size": size}), wanted)


@given(data=st.data())
@settings(max_examples=60)
def test_any_size_and_shape(data):
    shape = data.draw(st.tuples(st.integers(1, 30), st.integers(1, 60), st.integers(1, 4)))
    size = data.draw(st.integers(1, 15)) * 2 + 1
    array = noise(shape, data.draw(st.sampled_from(DTYPES)))
    array.flat[:: data.draw(st.integers(1, 7))] = array.flat[0]
    assert_same(run("median_blur", array, {"size": size}), sorted_median(array, size))


@pytest.mark.parametrize("size", (3, 5, 7))
def test_nan_is_last_and_bits_come_back(size):
    array = sprinkle(noise((17, 23, 1), "float32"))
    raw = array.view(np.int32)
    keys = np.where(raw < 0, ~raw.view(np.uint32), raw.view(np.uint32) | np.uint32(1 << 31))
    wanted = sorted_median(keys, size)
    wanted = np.where(wanted >> 31, wanted & np.uint32(0x7FFFFFFF), ~wanted)
    assert_same(run("median_blur", array, {"size": size}).view(np.uint32), wanted.astype(np.uint32))


def test_a_batch_of_sizes(device):
    arrays = [noise(shape[:2] + (3,), "uint8") for shape in SHAPES]
    chain = parse_chain("median-blur --size 5 | flip --axis 1 | median-blur --size 9 | invert")
    for array, got in zip(arrays, run_ragged([chain] * len(arrays), arrays, device), strict=True):
        assert_same(got, step_by_step(chain, array, device))


@pytest.mark.parametrize("size", (3, 5, 9))
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_part_is_the_part_of_the_whole(size, dtype, device):
    """A crop after the filter makes only what it keeps, in the same launch."""
    array = noise((2, 61, 83, 3), dtype)
    chain = parse_chain(f"median-blur --size {size} | crop --width 31 --height 17 --x 40 --y 9")
    assert len(chain.plan(cvcli.as_tensor(array).spec()).passes) == 1
    assert_same(run_chain(chain, array, device), step_by_step(chain, array, device))


@pytest.mark.parametrize("size", (0, 1, 2, 4, 33))
def test_sizes_that_are_refused(size):
    with pytest.raises(ParameterError, match=r"^median-blur: size must be .*, got "):
        cvcli.median_blur(cvcli.as_tensor(noise((9, 9, 3), "uint8")), size)


@pytest.mark.gpu
@pytest.mark.parametrize("size", (3, 5, 7, 15, 17, 31))
@pytest.mark.parametrize("dtype", DTYPES)
def test_more_than_a_tile_on_both_devices(size, dtype):
    array = noise((2, 301, 533, 3), dtype)
    assert_same(
        run("median_blur", array, {"size": size}, "cuda:0"),
        run("median_blur", array, {"size": size}),
    )
