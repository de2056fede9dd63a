"""The bilateral filter against its float64 formula and OpenCV."""

from __future__ import annotations

from itertools import product

import cv2
import numpy as np
import pytest
from conftest import CHANNELS, DTYPES, ROOT, assert_same, bits, noise, run
from PIL import Image

SIZES = ((1, 1), (1, 37), (29, 1), (3, 5), (17, 11), (61, 83))
TOP = {"uint8": 255.0, "uint16": 65535.0, "float32": 1.0}
NP_BORDERS = {
    "constant": "constant",
    "replicate": "edge",
    "reflect": "symmetric",
    "reflect101": "reflect",
    "wrap": "wrap",
}
CASES = ((3, 0.1, 1.0), (5, 0.1, 3.0), (7, 0.4, 1.5), (9, 3.0, 2.0), (15, 0.2, 5.0), (0, 0.2, 2.0))


def formula(array, diameter, sigma_color, sigma_space, border="reflect101", value=0):
    """In float64; alpha as it is."""
    radius = max(1, diameter // 2 if diameter else round(1.5 * sigma_space))
    height, width, channels = array.shape
    colours = channels - 1 if channels in (2, 4) else channels
    extra = {"constant_values": value} if border == "constant" else {}
    pads = (radius, radius), (radius, radius), (0, 0)
    source = array[..., :colours].astype(np.float64)
    wide = np.pad(source, pads, mode=NP_BORDERS[border], **extra)
    total, weights = np.zeros_like(source), np.zeros((height, width, 1))
    for dy, dx in product(range(-radius, radius + 1), repeat=2):
        if dy**2 + dx**2 > radius**2:
            continue
        near = wide[radius + dy :, radius + dx :][:height, :width]
        difference = np.abs(near - source).sum(2, keepdims=True)
        weight = np.exp(
            -(dy**2 + dx**2) / (2 * sigma_space**2) - difference**2 / (2 * sigma_color**2)
        )
        total += weight * near
        weights += weight
    return total / weights


def assert_close(got, array, wanted):
    colours = wanted.shape[2]
    assert_same(got[..., colours:], array[..., colours:])
    if array.dtype == np.float32:
        np.testing.assert_allclose(got[..., :colours], wanted, rtol=0, atol=1e-5)
    else:
        slack = {"uint8": 0.001, "uint16": 0.5}[array.dtype.name]
        assert np.abs(got[..., :colours] - wanted).max() <= 0.5 + slack


@pytest.mark.parametrize("border", NP_BORDERS)
@pytest.mark.parametrize("diameter, sigma_color, sigma_space", CASES)
def test_it_is_its_formula(diameter, sigma_color, sigma_space, border, device):
    for dtype, channels, size in product(DTYPES, CHANNELS, SIZES):
        array, top = noise((*size, channels), dtype), TOP[dtype]
        case = {
            "diameter": diameter,
            "sigma_color": sigma_color * top,
            "sigma_space": sigma_space,
            "border": border,
            "value": 0.25 if dtype == "float32" else int(0.25 * top),
        }
        got = run("bilateral_filter", array, case, device)
        assert_close(got, array, formula(array, *list(case.values())))


def test_photographs_are_opencv_s(device):
    with Image.open(ROOT / "sample_images" / "chelsea.png") as image:
        array = np.asarray(image.convert("RGB"))
    for diameter, sigma_color, sigma_space in ((5, 25, 3), (9, 60, 2)):
        wanted = cv2.bilateralFilter(
            array, diameter, sigma_color, sigma_space, borderType=cv2.BORDER_REFLECT_101
        )
        case = {"diameter": diameter, "sigma_color": sigma_color, "sigma_space": sigma_space}
        got = run("bilateral_filter", array, case, device)
        assert np.abs(got.astype(int) - wanted).max() <= 1
        assert np.mean(got != wanted) < 0.001


def test_what_is_no_number_has_no_weight(device):
    case = {"diameter": 5, "sigma_color": 0.2, "sigma_space": 2}
    for channels, special in product((1, 3), (np.nan, np.inf, -np.inf)):
        array = noise((17, 21, channels), "float32")
        array[8, 9, 0] = special
        got = run("bilateral_filter", array, case, device)
        # It stays as it is; its neighbours are means of the others.
        assert np.isnan(got[8, 9, 0]) if np.isnan(special) else got[8, 9, 0] == special
        assert np.isfinite(np.delete(got.reshape(-1, channels), 8 * 21 + 9, 0)).all()
        assert set(np.unique(bits(got[np.isnan(got)]))) <= {0x7FC00000}


def test_alpha_neither_counts_nor_changes(device):
    for channels in (2, 4):
        array = noise((61, 83, channels), "uint8")
        got = run("bilateral_filter", array, {}, device)
        alone = run("bilateral_filter", array[..., : channels - 1].copy(), {}, device)
        assert_same(got, np.concatenate([alone, array[..., channels - 1 :]], 2))


@pytest.mark.gpu
@pytest.mark.parametrize("diameter", (3, 5, 7, 9, 11))
def test_devices_agree(diameter):
    for dtype, channels, size in product(DTYPES, CHANNELS, ((97, 131), (64, 96))):
        array = noise((*size, channels), dtype)
        case = {"diameter": diameter, "sigma_color": 0.3 * TOP[dtype]}
        got = run("bilateral_filter", array, case, "cuda:0")
        assert_same(got, run("bilateral_filter", array, case))
