"""Operators that adapt to the image: against OpenCV, Pillow and float64 formulas."""

from __future__ import annotations

import cv2
import emulator
import numpy as np
import pytest
from conftest import assert_same, noise, run, run_chain, run_ragged, sprinkle, step_by_step
from PIL import Image, ImageOps

import cvcli
from cvcli.errors import ParameterError
from cvcli.ops import parse_chain

SHAPES = ((1, 1, 1), (1, 300, 3), (300, 1, 3), (17, 11, 2), (61, 83, 4), (61, 83, 1), (200, 130, 3))
CLAHE = ((40.0, 8, 8), (2.0, 4, 3), (0.0, 1, 8), (0.5, 3, 1))
METHODS = (("otsu", cv2.THRESH_OTSU), ("triangle", cv2.THRESH_TRIANGLE))
KINDS = {
    "binary": cv2.THRESH_BINARY,
    "binary_inv": cv2.THRESH_BINARY_INV,
    "trunc": cv2.THRESH_TRUNC,
    "tozero": cv2.THRESH_TOZERO,
    "tozero_inv": cv2.THRESH_TOZERO_INV,
}


def pictures():
    """Noise over all values, over a few, two peaks, one value, a ramp; of every shape."""
    for shape in SHAPES:
        yield noise(shape, "uint8")
        yield noise(shape, "uint8") // 3 + 60
        yield np.where(noise(shape, "uint8") > 90, 200, 40).astype(np.uint8)
        yield np.full(shape, 77, np.uint8)
        yield (np.arange(np.prod(shape)).reshape(shape) // 7 % 251).astype(np.uint8)


def by_channel(array, function):
    """A function of a plane on every channel but alpha."""
    out = array.copy()
    for channel in range(array.shape[2] - (array.shape[2] % 2 == 0)):
        out[..., channel] = function(np.ascontiguousarray(array[..., channel]))
    return out


def test_histogrameq_is_opencv():
    for array in pictures():
        assert_same(run("histogrameq", array, {}), by_channel(array, cv2.equalizeHist))


def stretched(plane):
    return np.asarray(ImageOps.autocontrast(Image.fromarray(plane)))


def test_autocontrast_is_pillow():
    for array in pictures():
        assert_same(run("autocontrast", array, {}), by_channel(array, stretched))


def test_autocontrast_of_every_range_is_pillow():
    """Lowest and highest values of every kind, with all values between them."""
    for low in range(0, 256, 5):
        for high in range(low, 256, 3):
            plane = np.arange(low, high + 1, dtype=np.uint8)[None]
            assert_same(run("autocontrast", plane[..., None], {})[..., 0], stretched(plane))


@pytest.mark.parametrize("dtype, top", (("uint16", 65535.0), ("float32", 1.0)))
def test_autocontrast_of_other_depths(dtype, top):
    array = noise((61, 83, 3), dtype)
    plane = array.astype(np.float64)
    low, high = plane.min((0, 1)), plane.max((0, 1))
    scale = top / (high - low)
    wanted = np.clip(plane * scale - low * scale, 0, top)
    got = run("autocontrast", array, {})
    if dtype == "uint16":
        assert_same(got, wanted.astype(np.uint16))
    else:
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-7)


@pytest.mark.parametrize("clip, across, down", CLAHE)
def test_clahe_is_opencv(clip, across, down):
    made = cv2.createCLAHE(clip, (across, down))
    case = {"clip_limit": clip, "tiles_x": across, "tiles_y": down}
    for array in pictures():
        assert_same(run("clahe", array, case), by_channel(array, made.apply))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method, flag", METHODS)
def test_found_thresholds_are_opencv(method, flag, kind):
    case = {"method": method, "type": kind, "maxval": 200}
    for array in pictures():
        if array.shape[2] <= 2:
            plane = np.ascontiguousarray(array[..., 0])
            _, wanted = cv2.threshold(plane, 0, 200, flag | KINDS[kind])
            got = run("threshold", array, case)
            assert_same(got[..., 0], wanted)
            assert_same(got[..., 1:], array[..., 1:])


@pytest.mark.parametrize("factor", (0.0, 0.4, 1.0, 1.5, 100.0))
@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32"))
def test_adjust_contrast_blends_with_the_mean(dtype, factor):
    for shape in SHAPES:
        array = noise(shape, dtype)
        colours = shape[2] - (shape[2] % 2 == 0)
        plane = array[..., :colours].astype(np.float64)
        gray = plane @ [0.2989, 0.587, 0.114] if colours == 3 else plane[..., 0]
        gray = gray if dtype == "float32" else np.rint(gray)
        wanted = factor * plane + (1 - factor) * gray.mean()
        got = run("adjust_contrast", array, {"factor": factor})
        assert_same(got[..., colours:], array[..., colours:])
        if dtype == "float32":
            near = 1e-5 * (1 + factor)
            np.testing.assert_allclose(got[..., :colours], np.clip(wanted, 0, 1), rtol=0, atol=near)
        else:
            wanted = np.clip(np.rint(wanted), 0, np.iinfo(dtype).max)
            assert np.abs(got[..., :colours] - wanted).max() <= 1


@pytest.mark.parametrize("name, case", (("autocontrast", {}), ("adjust_contrast", {"factor": 0.5})))
def test_nan_and_infinity_have_a_result(name, case):
    array = sprinkle(noise((17, 11, 3), "float32"))
    got = run(name, array, case)
    assert np.isnan(got[np.isnan(array)]).all()
    numbers = got[~np.isnan(got)]
    assert ((numbers >= 0) & (numbers <= 1)).all()


def test_each_image_of_a_batch_has_its_own_statistics(device):
    arrays = [array for array in pictures() if array.shape[2] == 3]
    text = "flip --axis -1 | autocontrast | invert | pad --top 2 | clahe --tiles-x 2"
    chain = parse_chain(text)
    for array, got in zip(arrays, run_ragged([chain] * len(arrays), arrays, device), strict=True):
        assert_same(got, step_by_step(chain, array, device))


@pytest.mark.parametrize(
    "text",
    (
        "pad --top 3 --value 9 | histogrameq | histogrameq | flip --axis 1",
        "invert | autocontrast | rotate --angle 90 | adjust-contrast --factor 2",
        "clahe --clip-limit 3 | reformat --layout planar",
    ),
)
def test_chains_equal_their_steps(text, device):
    array = noise((2, 61, 83, 3), "uint8") // 2
    chain = parse_chain(text)
    assert_same(run_chain(chain, array, device), step_by_step(chain, array, device))


@pytest.mark.parametrize(
    "name, case, shape, dtype",
    (
        ("histogrameq", {}, (9, 9, 3), "uint16"),
        ("clahe", {}, (9, 9, 1), "float32"),
        ("threshold", {"method": "otsu"}, (9, 9, 3), "uint8"),
        ("threshold", {"method": "triangle"}, (9, 9, 1), "uint16"),
    ),
)
def test_what_it_is_not_made_for_is_refused(name, case, shape, dtype):
    with pytest.raises(ParameterError, match=f"^{name}: .*, got "):
        getattr(cvcli, name)(cvcli.as_tensor(noise(shape, dtype)), **case)


@pytest.mark.parametrize("channels", (1, 2, 3, 4))
def test_an_emulated_gpu_gives_the_same_bytes(channels):
    """Rows of whole chunks and others; all values, a few, and a single one."""
    for low, high, width in ((0, 256, 160), (100, 103, 45), (7, 8, 64), (255, 256, 33)):
        values = noise((2, 41, width, channels), "uint8").astype(int)
        array = (low + values % (high - low)).astype("uint8")
        emulator.compare("histogrameq", array)
        emulator.compare("autocontrast", array)
