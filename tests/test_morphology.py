"""Erosion, dilation, opening and closing against OpenCV and plain NumPy."""

from __future__ import annotations

from itertools import product

import cv2
import numpy as np
import pytest
from conftest import CHANNELS, DTYPES, ROOT, assert_same, bits, noise, run, sprinkle
from PIL import Image

SIZES = ((1, 1), (1, 37), (29, 1), (3, 5), (17, 11), (61, 83), (130, 200))
OPERATIONS = {
    "erode": cv2.MORPH_ERODE,
    "dilate": cv2.MORPH_DILATE,
    "open": cv2.MORPH_OPEN,
    "close": cv2.MORPH_CLOSE,
}
# Borders that repeat what the window holds anyway, so OpenCV's neutral one is the same.
NEUTRAL = ("replicate", "reflect", "reflect101")
NP_BORDERS = {"replicate": "edge", "reflect101": "reflect", "constant": "constant", "wrap": "wrap"}


def opencv(array, operation, size, iterations=1):
    kernel = np.ones(size[::-1], np.uint8)
    result = cv2.morphologyEx(array, OPERATIONS[operation], kernel, iterations=iterations)
    return result.reshape(array.shape)


def plain(array, largest, size, border, value=0):
    """Every sample of the window compared."""
    width, height = size
    extra = {"constant_values": value} if border == "constant" else {}
    pads = (height // 2, height // 2), (width // 2, width // 2), (0, 0)
    wide = np.pad(array, pads, mode=NP_BORDERS[border], **extra)
    pick, result = (np.maximum, np.minimum)[not largest], None
    for dy, dx in product(range(height), range(width)):
        part = wide[dy : dy + array.shape[0], dx : dx + array.shape[1]]
        result = part if result is None else pick(result, part)
    return result


@pytest.mark.parametrize("border", NEUTRAL)
@pytest.mark.parametrize("size", ((1, 1), (3, 3), (5, 5), (7, 3), (1, 9), (15, 15), (31, 17)))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_morphology_is_opencv_s(operation, size, border, device):
    for dtype, channels, shape in product(DTYPES, (1, 3, 4), SIZES):
        array = noise((*shape, channels), dtype)
        case = {"operation": operation, "size": size, "border": border}
        assert_same(run("morphology", array, case, device), opencv(array, operation, size))


@pytest.mark.parametrize("operation", OPERATIONS)
def test_photographs(operation, device):
    with Image.open(ROOT / "sample_images" / "astronaut.png") as image:
        array = np.asarray(image.convert("RGB"))
    for size in ((3, 3), (9, 5)):
        got = run("morphology", array, {"operation": operation, "size": size}, device)
        assert_same(got, opencv(array, operation, size))


@pytest.mark.parametrize("iterations", (2, 3, 9))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_iterations_are_opencv_s(operation, iterations, device):
    for dtype, shape in product(DTYPES, ((17, 11), (61, 83))):
        array = noise((*shape, 3), dtype)
        case = {"operation": operation, "size": (5, 3), "iterations": iterations}
        wanted = opencv(array, operation, (5, 3), iterations)
        assert_same(run("morphology", array, case, device), wanted)


@pytest.mark.parametrize("size", ((3, 3), (9, 5), (41, 3), (17, 29)))
@pytest.mark.parametrize("border", ("constant", "wrap", "reflect101"))
@pytest.mark.parametrize("largest", (False, True))
def test_borders_that_count(largest, border, size, device):
    """Windows of several passes are those of one, whatever lies outside."""
    operation = "dilate" if largest else "erode"
    for dtype, channels, shape in product(DTYPES, (1, 2), SIZES[:-1]):
        array = noise((*shape, channels), dtype)
        value = {"uint8": 120, "uint16": 30000, "float32": 0.25}[dtype]
        case = {"operation": operation, "size": size, "border": border, "value": value}
        wanted = plain(array, largest, size, border, value)
        assert_same(run("morphology", array, case, device), wanted)


def ordered(array):
    """Floats as integers in the order of the docstring."""
    raw = np.where(np.isnan(array), np.float32(np.nan), array).view(np.uint32).astype(np.int64)
    raw = np.where(np.isnan(array), 0x7FC00000, raw)
    return np.where(raw >> 31, -(raw & 0x7FFFFFFF) - 1, raw)


def test_floats_are_ordered(device):
    for channels in CHANNELS:
        array = noise((29, 31, channels), "float32")
        sprinkle(array)
        for largest in (False, True):
            case = {"operation": "dilate" if largest else "erode", "size": (5, 3)}
            got = run("morphology", array, case, device)
            wanted = plain(ordered(array), largest, (5, 3), "reflect101")
            np.testing.assert_array_equal(ordered(got), wanted)
            assert set(np.unique(bits(got[np.isnan(got)]))) <= {0x7FC00000}


@pytest.mark.gpu
@pytest.mark.parametrize("radius", range(1, 9))
def test_devices_agree_on_every_radius(radius):
    for dtype, channels, size in product(DTYPES, CHANNELS, ((97, 131), (64, 96))):
        array = noise((*size, channels), dtype)
        for operation, window in product(
            ("erode", "dilate"), ((2 * radius + 1, 3), (1, 2 * radius + 1))
        ):
            case = {"operation": operation, "size": window}
            assert_same(run("morphology", array, case, "cuda:0"), run("morphology", array, case))
