"""Blurs, sharpening and dense filters against float64 formulas, OpenCV and CV-CUDA's recordings."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import CHANNELS, DTYPES, ROOT, assert_same, noise, run, sprinkle
from PIL import Image

from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops import operator_named, parse_chain

DATA = Path(__file__).parent / "data"
NP_BORDERS = {
    "constant": "constant",
    "replicate": "edge",
    "reflect": "symmetric",
    "reflect101": "reflect",
    "wrap": "wrap",
}
CV_BORDERS = {
    "constant": cv2.BORDER_CONSTANT,
    "replicate": cv2.BORDER_REPLICATE,
    "reflect": cv2.BORDER_REFLECT,
    "reflect101": cv2.BORDER_REFLECT_101,
}
# Smaller than most kernels, one pixel wide or high, and larger than a tile of the GPU.
SIZES = ((1, 1), (1, 37), (29, 1), (3, 5), (17, 11), (61, 83), (130, 200))
TOP = {"uint8": 255, "uint16": 65535, "float32": 1.0}


def pictures(dtypes=DTYPES, channels=CHANNELS, sizes=SIZES):
    for dtype, depth, size in product(dtypes, channels, sizes):
        yield noise((*size, depth), dtype)


def photograph(name="coffee"):
    with Image.open(ROOT / "sample_images" / f"{name}.png") as image:
        return np.asarray(image.convert("RGB"))


def bordered(array, radius_y, radius_x, border, value=0):
    """An image with its border in float64."""
    extra = {"constant_values": value} if border == "constant" else {}
    pads = (radius_y, radius_y), (radius_x, radius_x), (0, 0)
    return np.pad(array.astype(np.float64), pads, mode=NP_BORDERS[border], **extra)


def correlated(array, kernel, border="reflect101", value=0):
    """The sum of float64 products, the kernel's middle at half its size."""
    kernel = np.asarray(kernel, np.float64)
    height, width = kernel.shape
    wide = bordered(array, height // 2, width // 2, border, value)
    total = np.zeros(array.shape)
    for dy, dx in product(range(height), range(width)):
        total += kernel[dy, dx] * wide[dy : dy + array.shape[0], dx : dx + array.shape[1]]
    return total


def separated(array, column, row, border="reflect101", value=0):
    """`correlated` with an outer product, an axis at a time."""
    rows = np.asarray(row, np.float64)[None, :]
    columns = np.asarray(column, np.float64)[:, None]
    wide = bordered(array, len(column) // 2, 0, border, value)
    # The border of what one axis made is the same rule on its results.
    inside = correlated(wide, rows, border, value)
    total = np.zeros(array.shape)
    for dy in range(len(columns)):
        total += columns[dy, 0] * inside[dy : dy + array.shape[0]]
    return total


def gauss(size, sigma):
    weights = np.exp(-((np.arange(size) - size // 2) ** 2) / (2 * sigma**2))
    return weights / weights.sum()


def assert_close(got, wanted, slack=0.06, tolerance=2e-6):
    """Integers are float64 results, rounded; those within ``slack`` of a tie either way."""
    if got.dtype == np.float32:
        scale = max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)
        return
    saturated = np.clip(wanted, 0, TOP[got.dtype.name])
    assert np.abs(got - saturated).max() <= 0.5 + slack


@pytest.mark.parametrize("border", NP_BORDERS)
@pytest.mark.parametrize("size, sigma", ((1, 1), (3, 0.6), (5, 1.2), (9, 2.5), (21, 3.3)))
def test_gaussian_is_its_formula(size, sigma, border, device):
    for array in pictures(channels=(1, 3, 4)):
        value = TOP[array.dtype.name] / 5
        case = {"size": size, "sigma": sigma, "border": border, "value": value}
        weights = gauss(size, sigma)
        wanted = separated(array, weights, weights, border, value)
        assert_close(run("gaussian", array, case, device), wanted)


@pytest.mark.parametrize("size", ((7, 3), (1, 9), (5, 1), (3, 31)))
def test_gaussian_of_two_sizes(size, device):
    for array in pictures(channels=(2, 3), sizes=((17, 11), (61, 83))):
        width, height = size
        wanted = separated(array, gauss(height, 1.7), gauss(width, 1.7))
        assert_close(run("gaussian", array, {"size": size, "sigma": 1.7}, device), wanted)


@pytest.mark.parametrize("border", CV_BORDERS)
@pytest.mark.parametrize("size, sigma", ((3, 0.8), (5, 1.2), (15, 3)))
def test_gaussian_is_opencv_s(size, sigma, border, device):
    for array in (photograph(), noise((61, 83, 3), "uint16"), noise((61, 83, 1), "uint8")):
        wanted = cv2.GaussianBlur(array, (size, size), sigma, borderType=CV_BORDERS[border])
        got = run("gaussian", array, {"size": size, "sigma": sigma, "border": border}, device)
        assert np.abs(got.astype(int) - wanted.reshape(got.shape)).max() <= 1


def test_gaussian_s_size_and_sigma_follow_opencv(device):
    # OpenCV's weights of integers have as few bits as their samples, which shows on wide kernels.
    most = {"uint8": 2, "uint16": 2, "float32": 2e-6}
    for dtype, sigma in product(DTYPES, (0.3, 0.42, 0.5, 1.0, 1.4, 2.6)):
        array = noise((61, 83, 3), dtype)
        wanted = cv2.GaussianBlur(array, (0, 0), sigma, borderType=cv2.BORDER_REFLECT_101)
        off = np.abs(run("gaussian", array, {"sigma": sigma}, device).astype(float) - wanted)
        assert off.max() <= most[dtype] and np.mean(off > 1) < 5e-3
    array = noise((61, 83, 3), "uint8")
    for size in (1, 11, 17):
        weights = gauss(size, 0.3 * (size // 2 - 1) + 0.8)
        assert_close(
            run("gaussian", array, {"size": size}, device), separated(array, *[weights] * 2)
        )


@pytest.mark.parametrize("value", (0, 1, 77, 254, 255))
def test_a_flat_image_stays_flat(value, device):
    array = np.full((9, 7, 3), value, np.uint8)
    for case in (
        {"sigma": 0.7},
        {"size": 31},
        {"size": 127, "sigma": 40},
        {"size": 5, "sigma": 90},
    ):
        assert_same(run("gaussian", array, case, device), array)
    assert_same(run("averageblur", array, {"size": 127}, device), array)
    assert_same(run("sharpen", array, {"amount": 40}, device), array)


def box_mean(array, size, border, value=0):
    """The mean by exact integers: no window of these has a mean halfway between two."""
    width, height = size
    wide = bordered(array, height // 2, width // 2, border, value).astype(np.int64)
    sums = np.zeros((wide.shape[0], *array.shape[1:]), np.int64)
    for dx in range(width):
        sums += wide[:, dx : dx + array.shape[1]]
    total = np.zeros(array.shape, np.int64)
    for dy in range(height):
        total += sums[dy : dy + array.shape[0]]
    area = width * height
    return ((total + area // 2) // area).astype(array.dtype)


@pytest.mark.parametrize("border", NP_BORDERS)
@pytest.mark.parametrize("size", ((1, 1), (3, 3), (7, 7), (3, 9), (15, 15), (17, 5), (33, 41)))
def test_averageblur_is_exact(size, border, device):
    for array in pictures(("uint8", "uint16"), channels=(1, 3, 4)):
        case = {"size": size, "border": border, "value": 9}
        assert_same(run("averageblur", array, case, device), box_mean(array, size, border, 9))


def test_averageblur_of_the_largest_windows(device):
    for dtype in ("uint8", "uint16"):
        white = np.full((20, 150, 3), TOP[dtype], dtype)
        for size in (15, 127):
            assert_same(run("averageblur", white, {"size": size}, device), white)
        array = noise((40, 150, 2), dtype)
        got = run("averageblur", array, {"size": 127}, device)
        assert_same(got, box_mean(array, (127, 127), "reflect101"))


@pytest.mark.parametrize("size", (3, 7, 21))
def test_averageblur_is_opencv_s(size, device):
    for array in (photograph(), noise((61, 83, 3), "uint8")):
        wanted = cv2.blur(array, (size, size), borderType=cv2.BORDER_REFLECT_101)
        assert_same(run("averageblur", array, {"size": size}, device), wanted)


def test_averageblur_of_floats(device):
    for array, size in product(pictures(("float32",)), ((3, 5), (9, 9), (19, 1))):
        weights = [np.full(side, 1 / side) for side in size]
        wanted = separated(array, weights[1], weights[0])
        assert_close(run("averageblur", array, {"size": size}, device), wanted)


LAPLACIANS = {
    1: [[0, 1, 0], [1, -4, 1], [0, 1, 0]],
    3: [[2, 0, 2], [0, -8, 0], [2, 0, 2]],
}


@pytest.mark.parametrize("border", NP_BORDERS)
@pytest.mark.parametrize("ksize", LAPLACIANS)
def test_laplacian(ksize, border, device):
    for array, scale in product(pictures(channels=(1, 2, 3)), (1.0, -0.7)):
        value = TOP[array.dtype.name] / 5
        kernel = scale * np.array(LAPLACIANS[ksize])
        wanted = correlated(array, kernel, border, value)
        case = {"ksize": ksize, "scale": scale, "border": border, "value": value}
        assert_close(run("laplacian", array, case, device), wanted, slack=0.01)


def test_laplacian_is_opencv_s(device):
    for ksize, array in product(LAPLACIANS, (photograph(), noise((61, 83, 3), "float32"))):
        wanted = cv2.Laplacian(array, -1, ksize=ksize, borderType=cv2.BORDER_REFLECT_101)
        got = run("laplacian", array, {"ksize": ksize}, device)
        if array.dtype == np.uint8:
            assert_same(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5)


KERNELS = [
    [[0.1, 0.2, 0.1], [0, -0.5, 0], [0.3, 0.2, 0.6]],
    [[1, -2, 0.5, 3, -1.5]],
    [[0.25], [0.5], [0.25]],
    [[1, 0], [0, -1]],
    [[0.1, 0.2, 0.3, 0.2, 0.1]] * 4,
    (np.outer(gauss(7, 2), gauss(9, 1)) * 1.3 - 0.01).tolist(),
]


@pytest.mark.parametrize("border", NP_BORDERS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_conv2d(kernel, border, device):
    for array in pictures(channels=(1, 3, 4), sizes=SIZES[:-1]):
        value = TOP[array.dtype.name] / 5
        case = {"kernel": kernel, "border": border, "value": value}
        wanted = correlated(array, kernel, border, value)
        assert_close(run("conv2d", array, case, device), wanted)


@pytest.mark.parametrize("kernel", KERNELS)
def test_conv2d_is_opencv_s(kernel, device):
    for array in (photograph(), noise((61, 83, 3), "uint16")):
        exact = np.array(kernel, np.float32)
        wanted = cv2.filter2D(array, -1, exact, borderType=cv2.BORDER_REFLECT_101)
        got = run("conv2d", array, {"kernel": kernel}, device)
        assert np.abs(got.astype(int) - wanted).max() <= 1


def test_conv2d_of_nothing_is_black(device):
    array = noise((17, 11, 3), "float32")
    sprinkle(array)
    assert_same(run("conv2d", array, {"kernel": "0,0;0,0"}, device), np.zeros_like(array))


def test_kernels_are_spelled_alike():
    operator = operator_named("conv2d")
    steps = [operator.step("0,1;2,-0.5"), operator.step([[0, 1], [2, -0.5]])]
    steps.append(operator.step((("0", 1.0), [2, "-.5"])))
    assert len(set(steps)) == 1
    assert parse_chain(str(steps[0])).steps == (steps[0],)
    with pytest.raises(ParameterError, match="conv2d: kernel must be rows of equally many numbers"):
        operator.step("1,2;3")
    with pytest.raises(ParameterError, match="conv2d: kernel must have at most 31"):
        operator.step([[1] * 32]).lower(ImageSpec(5, 5, 1, "uint8"))


@pytest.mark.parametrize("amount, sigma", ((1, 1), (0.5, 2), (3, 0.6), (0, 1)))
def test_sharpen_is_its_formula(amount, sigma, device):
    for array in pictures(channels=(1, 3, 4)):
        weights = gauss(2 * max(1, round(4 * sigma)) + 1, sigma)
        blurred = separated(array, weights, weights)
        wanted = array + amount * (array - blurred)
        got = run("sharpen", array, {"amount": amount, "sigma": sigma}, device)
        assert_close(got, wanted, tolerance=1e-5)
        if amount == 0:
            assert_same(got, array)


def torchvision_sharpness(array, factor):
    """What adjust_sharpness does there, in float64, but for cutting off instead of rounding."""
    values = array.astype(np.float64)
    smooth = values.copy()
    kernel = np.ones((3, 3))
    kernel[1, 1] = 5
    if min(array.shape[:2]) > 2:
        inside = correlated(array, kernel / 13)[1:-1, 1:-1]
        smooth[1:-1, 1:-1] = np.rint(inside) if array.dtype != np.float32 else inside
    return values + (1 - factor) * (smooth - values)


@pytest.mark.parametrize("factor", (0, 0.3, 1, 1.7, 8))
def test_adjust_sharpness_is_torchvision_s(factor, device):
    for array in pictures(sizes=(*SIZES, (2, 9), (9, 2))):
        got = run("adjust_sharpness", array, {"factor": factor}, device)
        # By |1 - factor| where the smooth one itself lies on a tie.
        assert_close(got, torchvision_sharpness(array, factor), abs(1 - factor), tolerance=1e-5)
        if factor == 1:
            assert_same(got, array)


SPELLED = {"op": "operation"}
EXACT = ("averageblur", "laplacian", "morphology")


def golden_cases():
    with np.load(DATA / "stencil_golden.npz") as stored:
        return stored.files


@pytest.mark.parametrize("case", golden_cases())
def test_cvcuda(case, device):
    operator, name, params = case.removeprefix("out:").split("|")
    with np.load(DATA / "stencil_golden.npz") as stored:
        wanted = stored[case]
    with np.load(DATA / "cvcuda_golden.npz") as stored:
        src = stored[f"src:{name}"]
    given = {SPELLED.get(key, key): value for key, value in json.loads(params).items()}
    if operator != "laplacian":
        given["size"] = given.pop("ksize")
    got = run(operator, src, given, device)
    if src.dtype == np.float32:
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)
    elif operator in EXACT:
        assert_same(got, wanted)
    else:
        # CV-CUDA sums the two-dimensional kernel in float32 and fuses multiply-adds.
        assert np.abs(got.astype(int) - wanted).max() <= 1


def test_sizes_that_can_not_be_are_refused():
    gaussian = operator_named("gaussian")
    for size in (4, "5,2", (1, 2, 3), 0, -3, 129, (), "x"):
        with pytest.raises(ParameterError, match="gaussian: size must be"):
            gaussian.step(size=size)
    spec = ImageSpec(5, 5, 1, "uint8")
    with pytest.raises(ParameterError, match="gaussian: sigma or size must be given"):
        gaussian.step().lower(spec)
    with pytest.raises(
        ParameterError, match="gaussian: sigma must give a kernel of at most 127 px"
    ):
        gaussian.step(sigma=30).lower(spec)
