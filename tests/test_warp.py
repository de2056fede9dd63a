"""Warps against OpenCV, a float64 formula, CV-CUDA's recordings, and their own laws."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import cv2
import emulator
import numpy as np
import pytest
from conftest import DTYPES, assert_same, noise, run
from PIL import Image

ROOT = Path(__file__).resolve().parent
DATA = ROOT / "data"
FILTERS = {"nearest": 0, "bilinear": 1, "bicubic": 2}
BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "replicate": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT,
    "reflect101": cv2.BORDER_REFLECT101,
    "wrap": cv2.BORDER_WRAP,
}
SHEAR = np.array([[0.9, -0.2, 10], [0.15, 1.1, -3]])
TILT = np.array([[1, 0.02, 3], [0.01, 1, 2], [1e-4, 1e-4, 1]])
SIZES = ((1, 1), (1, 37), (29, 1), (17, 11), (61, 83), (130, 200))


def photograph(height=240, width=320):
    with Image.open(ROOT.parent / "sample_images" / "coffee.png") as image:
        return np.asarray(image.convert("RGB"))[:height, :width].copy()


def apart(got, wanted):
    return np.abs(got.astype(np.float64) - wanted.astype(np.float64))


def turn_of(width, height, angle):
    return cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, 1.0)


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("interp", ("bilinear", "bicubic"))
def test_opencv_on_a_photograph(interp, border):
    array = photograph()
    height, width = array.shape[:2]
    case = {"interp": interp, "border": border, "value": (9, 70, 200)}
    options = {
        "flags": FILTERS[interp],
        "borderMode": BORDERS[border],
        "borderValue": (9, 70, 200),
    }
    got = run("warp_affine", array, {"matrix": SHEAR, **case})
    assert apart(got, cv2.warpAffine(array, SHEAR, (width, height), **options)).max() <= 1
    got = run("warp_perspective", array, {"matrix": TILT, **case})
    assert apart(got, cv2.warpPerspective(array, TILT, (width, height), **options)).max() <= 1
    got = run("rotate", array, {"angle": 30, **case})
    turn = turn_of(width, height, 30)
    assert apart(got, cv2.warpAffine(array, turn, (width, height), **options)).max() <= 1


def test_opencv_nearest():
    """The same pixels, but where a place lies half way between two and rounding errors decide."""
    array = photograph()
    size = array.shape[1], array.shape[0]
    pairs = (
        (run("rotate", array, {"angle": 30, "interp": "nearest"}), turn_of(*size, 30)),
        (run("warp_affine", array, {"matrix": SHEAR, "interp": "nearest"}), SHEAR),
        (run("warp_perspective", array, {"matrix": TILT, "interp": "nearest"}), TILT),
    )
    for (got, matrix), most in zip(pairs, (0.0, 0.015, 0.001), strict=True):
        warp = cv2.warpAffine if len(matrix) == 2 else cv2.warpPerspective
        wanted = warp(array, matrix, size, flags=cv2.INTER_NEAREST)
        assert np.any(got != wanted, axis=2).mean() <= most


def places(matrix, height, width):
    """Where pixels of the result come from, in float64; the matrix leads back."""
    full = np.vstack([matrix, [0, 0, 1]]) if len(matrix) == 2 else matrix
    y, x = np.mgrid[:height, :width].astype(np.float64)
    u, v, w = (row[0] * x + row[1] * y + row[2] for row in full)
    w = np.where(w == 0, np.inf, w)
    return u / w, v / w


def border_index(index, length, border):
    """The definition, by walking: each rule as the sequence it repeats, and -1 for the constant."""
    line = list(range(length))
    sequence = {
        "wrap": line,
        "reflect": line + line[::-1],
        "reflect101": line + line[-2:0:-1],
    }.get(border)
    if sequence is not None:
        return np.array(sequence)[index.astype(np.int64) % len(sequence)]
    clipped = np.clip(index, 0, length - 1).astype(np.int64)
    return clipped if border == "replicate" else np.where(clipped == index, clipped, -1)


def keys(distance, a):
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def formula(array, matrix, interp, border="constant", value=0.0, size=None, a=-0.75):
    """The definition in float64, unrounded; the matrix leads from the result to the source."""
    height, width = array.shape[:2]
    x, y = places(matrix, *(size or (height, width)))
    if interp == "nearest":
        x, y = np.floor(x + 0.5), np.floor(y + 0.5)
    left, top = np.floor(x), np.floor(y)
    reach = {"nearest": (0,), "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}[interp]
    total = 0.0
    for j, i in product(reach, reach):
        at_y = border_index(top + j, height, border)
        at_x = border_index(left + i, width, border)
        tap = array[at_y, at_x].astype(np.float64)
        tap[(at_y < 0) | (at_x < 0)] = value
        if interp == "bilinear":
            weight = (1 - np.abs(y - top - j)) * (1 - np.abs(x - left - i))
        else:
            weight = keys(y - top - j, a) * keys(x - left - i, a) if len(reach) > 1 else 1 + 0 * x
        total = total + weight[..., None] * tap
    return total


def rounded(values, dtype):
    if dtype == "float32":
        return values
    return np.clip(np.rint(values), 0, np.iinfo(dtype).max)


# By how much a sample may be off: for uint8 by rounding, and by what an error of a place makes of
# noise that goes from black to white in a pixel: 2^-14 in a uint8's weight, float32 in the rest.
LIMITS = {"uint8": 1, "uint16": 2, "float32": 4e-6}


@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("interp", ("bilinear", "bicubic"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_formula_of_an_affine_map(dtype, interp, border):
    back = np.array([[0.9, -0.2, 2.25], [0.15, 1.3, -3.3]])
    for (height, width), channels in product(SIZES, (1, 3)):
        array = noise((height, width, channels), dtype)
        case = {"matrix": back, "inverse": True, "interp": interp, "border": border}
        got = run("warp_affine", array, {**case, "value": "25%"})
        level = (1.0 if dtype == "float32" else np.iinfo(dtype).max) / 4
        level = rounded(np.float64(level), dtype)
        wanted = rounded(formula(array, back, interp, border, level), dtype)
        assert apart(got, wanted).max() <= LIMITS[dtype]


OPERATORS = (
    ("rotate", {"angle": 30}),
    ("warp_affine", {"matrix": SHEAR}),
    ("warp_perspective", {"matrix": TILT}),
)


@pytest.mark.parametrize("interp", FILTERS)
@pytest.mark.parametrize("name, case", OPERATORS)
def test_what_is_opaque_is_as_without_alpha(name, case, interp):
    for channels in (2, 4):
        array = noise((61, 83, channels), "uint8")
        array[..., -1] = 255
        given = {**case, "interp": interp, "border": "reflect"}
        got = run(name, array, given)
        assert_same(got[..., :-1], run(name, array[..., :-1].copy(), given))
        assert (got[..., -1] == 255).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, case", OPERATORS)
def test_what_is_transparent_lends_no_colour(name, case, dtype):
    """Colours are weighed by their alpha: the border's black does not darken the edge."""
    top = 1.0 if dtype == "float32" else np.iinfo(dtype).max
    array = np.zeros((61, 83, 4), dtype)
    array[...] = np.array([0.8, 0.4, 0.2, 1.0]) * top
    got = run(name, array, {**case, "value": (0, 0, 0, 0)}).astype(np.float64) / top
    seen = got[..., 3] > 0.2
    assert seen.any() and (got[..., 3] < 0.9)[seen].any()
    near = 0.02 if dtype == "uint8" else 1e-3
    assert np.abs(got[seen] - [0.8, 0.4, 0.2, 0.0])[:, :3].max() < near


@pytest.mark.parametrize("interp", ("bilinear", "bicubic"))
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_formula_of_a_perspective_map(dtype, interp):
    """Places are rounded to 2^-16 and float32, of which noise makes up to 2^-12 of white."""
    for (height, width), channels in product(((17, 11), (130, 200)), (1, 3)):
        array = noise((height, width, channels), dtype)
        case = {"matrix": TILT, "inverse": True, "interp": interp, "border": "reflect"}
        wanted = rounded(formula(array, TILT, interp, "reflect"), dtype)
        limit = {"uint8": 1, "uint16": 16, "float32": 2e-4}[dtype]
        assert apart(run("warp_perspective", array, case), wanted).max() <= limit


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_formula_of_nearest(dtype):
    for matrix, name in ((SHEAR, "warp_affine"), (TILT, "warp_perspective")):
        array = noise((61, 83, 3), dtype)
        x, y = places(matrix, 61, 83)
        # Where a place is not half way between two pixels there is only one answer.
        sure = (np.abs(x % 1 - 0.5) > 1e-4) & (np.abs(y % 1 - 0.5) > 1e-4)
        got = run(name, array, {"matrix": matrix, "inverse": True, "interp": "nearest"})
        wanted = formula(array, matrix, "nearest")
        assert sure.mean() > 0.8 and (got[sure] == wanted[sure]).all()


def test_half_way_nearest_goes_right_and_down():
    array = np.arange(12, dtype=np.uint8).reshape(3, 4, 1)
    case = {"matrix": [[1, 0, 0.5], [0, 1, 0.5]], "inverse": True, "interp": "nearest"}
    assert_same(run("warp_affine", array, case)[:2, :3], array[1:, 1:])


def golden_cases():
    with np.load(DATA / "cvcuda_warp.npz") as stored:
        return stored.files


@pytest.mark.parametrize("case", golden_cases())
def test_cvcuda(case, device):
    name, image, text = case.removeprefix("out:").split("|")
    params = json.loads(text)
    with np.load(DATA / "cvcuda_golden.npz") as inputs, np.load(DATA / "cvcuda_warp.npz") as stored:
        src, theirs = inputs[f"src:{image}"][0], stored[case][0]
    interp = {"linear": "bilinear", "cubic": "bicubic"}.get(params["interp"], params["interp"])
    if name == "rotate":
        return check_cvcuda_rotation(src, theirs, params, interp, device)
    given = {"matrix": params["matrix"], "interp": interp, "border": params["border"]}
    inverse = bool(params.get("inverse_map"))
    got = run(name, src, {**given, "inverse": inverse}, device)
    if src.shape[2] == 4 and interp != "nearest":
        # CV-CUDA mixes colours without a look at their alpha.
        src, theirs, got = src[..., 3:], theirs[..., 3:], got[..., 3:]
    if interp == "bicubic":
        # CV-CUDA's cubic is Keys' with a = -0.5.
        full = np.vstack([params["matrix"], [0, 0, 1]])[:3]
        back = np.linalg.inv(full)
        wanted = rounded(formula(src, back, interp, a=-0.5), src.dtype.name)
        assert np.mean(apart(theirs, wanted) <= 1) > 0.999
        wanted = rounded(formula(src, back, interp), src.dtype.name)
        assert apart(got, wanted).max() <= 1
        assert np.mean(got != theirs) > 0.3
    elif interp == "nearest":
        # Its affine nearest takes the other pixel at some places half way between two.
        assert np.mean(got != theirs) <= (0.02 if name == "warp_affine" else 0.0)
    else:
        limit = {"uint8": 1, "uint16": 2, "float32": 2e-5}[src.dtype.name]
        assert apart(got, theirs).max() <= limit


def check_cvcuda_rotation(src, theirs, params, interp, device):
    """It turns about the corner, and writes no pixel whose place is outside the image."""
    turn, (x, y) = np.radians(params["angle"]), params["shift"]
    cos, sin = np.cos(turn), np.sin(turn)
    back = np.array([[cos, -sin, sin * y - cos * x], [sin, cos, -sin * x - cos * y]])
    given = {"matrix": back, "inverse": True, "interp": interp, "border": "replicate"}
    got = run("warp_affine", src, given, device)
    if src.shape[2] == 4 and interp != "nearest":
        src, theirs, got = src[..., 3:], theirs[..., 3:], got[..., 3:]
    u, v = places(back, *src.shape[:2])
    height, width = src.shape[:2]
    inside = (u > 0.01) & (u < width - 1.01) & (v > 0.01) & (v < height - 1.01)
    limit = {"uint8": 1, "uint16": 6, "float32": 1e-4}[src.dtype.name]
    assert inside.mean() > 0.2 and apart(got, theirs)[inside].max() <= limit


def test_places_a_hundred_thousand_pixels_away():
    """Affine ones lose nothing; a perspective one is a float32, there good to half of 2^-7."""
    array = noise((3, 120_000, 1), "uint8")
    back = np.array([[0.999, 0.5, 0.3], [1e-6, 1, 0.25]])
    got = run("warp_affine", array, {"matrix": back, "inverse": True, "border": "reflect"})
    wanted = rounded(formula(array, back, "bilinear", "reflect"), "uint8")
    assert apart(got, wanted).max() <= 1
    tilted = np.vstack([back, [1e-9, 0, 1]])
    case = {"matrix": tilted, "inverse": True, "border": "reflect"}
    got = run("warp_perspective", array, case)
    wanted = formula(array, tilted, "bilinear", "reflect")
    assert apart(got, wanted).max() <= 255 / 64 + 1
    emulator.compare("warp_perspective", array, **case)


# Maps whose whole tiles don't fit into shared memory, whose parts do, and whose parts don't either.
SHRINKING = (
    ("warp_affine", {"matrix": "0.55,-0.2,20;0.15,0.6,-3"}),
    ("warp_affine", {"matrix": "0.3,-0.1,20;0.15,0.3,-3", "border": "reflect101"}),
    ("warp_affine", {"matrix": "0.02,0,10;0,0.02,20", "border": "wrap"}),
    ("warp_perspective", {"matrix": "0.5,-0.3,10;0.3,0.5,-10;0.001,0.0005,1", "value": 9}),
)


@pytest.mark.parametrize(
    "channels, dtype", ((3, "uint8"), (4, "uint8"), (1, "uint8"), (2, "uint16"))
)
def test_maps_that_shrink_give_the_same_bytes_in_the_emulator(channels, dtype):
    array = noise((2, 150, 260, channels), dtype)
    for name, case in SHRINKING:
        emulator.compare(name, array, **case)
        emulator.compare(name, array[:, :131, :207], interp="nearest", **case)
