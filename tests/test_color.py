"""Colour operators against OpenCV, torchvision's definitions in float64 and CV-CUDA's outputs."""

from __future__ import annotations

import json

import cv2
import emulator
import numpy as np
import pytest
from conftest import ROOT, assert_same, bits, noise, run, run_chain, sprinkle
from PIL import Image

import cvcli
from cvcli.core.chain import Chain
from cvcli.errors import ParameterError
from cvcli.ops import operator_named

SIZES = ((1, 1), (1, 37), (29, 1), (17, 11), (61, 83), (130, 200))
SPACES = ("HSV", "HSV_FULL", "HLS", "HLS_FULL", "YCrCb", "YUV", "XYZ", "Lab", "Luv")
INTEGER_ONLY = ("YCrCb", "YUV", "XYZ")
TOP = {"uint8": 255, "uint16": 65535, "float32": 1}


def dense():
    """All colours whose samples are multiples of 3, and 100,000 more: every hue, dark and light."""
    levels = np.arange(0, 256, 3, dtype=np.uint8)
    cube = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), -1).reshape(-1, 3)
    colours = np.concatenate([cube, noise((100_000, 3), "uint8")])
    return colours[: len(colours) // 512 * 512].reshape(-1, 512, 3)


def photograph(name="coffee"):
    with Image.open(ROOT / "sample_images" / f"{name}.png") as image:
        return np.asarray(image.convert("RGB"))[::3, ::3].copy()


def codes(space):
    name, _, full = space.partition("_")
    end = f"_{full}" if full else ""
    return f"RGB2{name}{end}", f"{name}2RGB{end}"


def opencv(code, array):
    return cv2.cvtColor(array, getattr(cv2, f"COLOR_{code}"))


def convert(code, array, device="cpu"):
    return run("cvtcolor", array, {"code": code.lower()}, device)


def difference(got, wanted):
    assert got.dtype == wanted.dtype and got.size == wanted.size
    return np.abs(got.astype(np.float64).ravel() - wanted.astype(np.float64).ravel())


def light64(v):
    return np.where(v <= 0.04045, v / 12.92, ((np.maximum(v, 0) + 0.055) / 1.055) ** 2.4)


TO_XYZ = np.array(
    [[0.412453, 0.357580, 0.180423], [0.212671, 0.715160, 0.072169], [0.019334, 0.119193, 0.950227]]
)
WHITE = np.array([0.950456, 1.0, 1.088754])


def lab_and_luv64(rgb):
    """L*a*b* and L*u*v* of sRGB from 0 to 1, by the formulas of OpenCV's documentation."""
    xyz = light64(rgb) @ TO_XYZ.T
    t = xyz / WHITE
    f = np.where(t > 0.008856, np.cbrt(t), 7.787 * t + 16 / 116)
    lightness = 116 * f[..., 1] - 16
    lab = np.stack([lightness, 500 * (f[..., 0] - f[..., 1]), 200 * (f[..., 1] - f[..., 2])], -1)
    total = np.maximum(xyz @ [1, 15, 3], 1e-30)
    u = 13 * lightness * (4 * xyz[..., 0] / total - 0.19793943)
    v = 13 * lightness * (9 * xyz[..., 1] / total - 0.46831096)
    return {"Lab": lab, "Luv": np.stack([lightness, u, v], -1)}


SCALES = {
    "Lab": ((2.55, 1, 1), (0, 128, 128)),
    "Luv": ((2.55, 255 / 354, 255 / 262), (0, 134 * 255 / 354, 140 * 255 / 262)),
}


@pytest.mark.parametrize("space", SPACES)
def test_uint8_is_opencv_s(space, device):
    to, back = codes(space)
    exact = space in (*INTEGER_ONLY, "HSV", "HSV_FULL")
    for rgb in (dense(), photograph()):
        got = convert(to, rgb, device)
        off = difference(got, opencv(to, rgb))
        if exact:
            assert not off.any()
        elif space == "Lab":
            # OpenCV reads Lab out of a coarse table; it is 3 off its own formula now and then.
            assert off.max() <= 3 and np.mean(off > 2) < 1e-5
        else:
            assert off.max() <= 1
        if space != "Luv":
            assert difference(convert(back, got, device), opencv(back, got)).max() <= (
                2 if space == "Lab" else 1
            )


@pytest.mark.parametrize("space", ("YCrCb", "YUV", "XYZ", "HSV", "HSV_FULL", "HLS", "HLS_FULL"))
def test_back_from_any_bytes_is_opencv_s(space, device):
    back = codes(space)[1]
    any_bytes = dense()
    off = difference(convert(back, any_bytes, device), opencv(back, any_bytes))
    assert off.max() <= (0 if space in INTEGER_ONLY else 1)


@pytest.mark.parametrize("space", ("Lab", "Luv"))
def test_uint8_lab_and_luv_are_their_formulas(space, device):
    rgb = dense()
    scale, shift = SCALES[space]
    wanted = np.rint(lab_and_luv64(rgb / 255)[space] * scale + shift).clip(0, 255).astype(np.uint8)
    got = convert(codes(space)[0], rgb, device)
    off = difference(got, wanted)
    assert off.max() <= 1 and np.mean(off > 0) < 2e-3
    # Back: as good as 8 bits of the space allow, which OpenCV's own way back shows.
    mine = difference(convert(codes(space)[1], got, device), rgb)
    theirs = difference(opencv(codes(space)[1], got), rgb)
    assert mine.mean() <= theirs.mean() * 1.01 and mine.max() <= theirs.max() + 1


@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32"))
@pytest.mark.parametrize("space", INTEGER_ONLY)
def test_matrices_of_every_dtype_and_size(space, dtype, device):
    limit = 1e-6 if dtype == "float32" else 0
    for size in SIZES:
        rgb = noise((*size, 3), dtype)
        for code in codes(space):
            assert difference(convert(code, rgb, device), opencv(code, rgb)).max() <= limit


@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32"))
def test_gray_is_opencv_s(dtype, device):
    for rgb in [noise((*size, 3), dtype) for size in SIZES]:
        limit = 2.5e-7 if dtype == "float32" else 0
        for code in ("RGB2GRAY", "BGR2GRAY"):
            assert difference(convert(code, rgb, device), opencv(code, rgb)).max() <= limit
    if dtype == "uint8":
        assert not difference(
            convert("RGB2GRAY", dense(), device), opencv("RGB2GRAY", dense())
        ).any()


@pytest.mark.parametrize("space", ("HSV", "HLS"))
def test_float_hues_are_opencv_s(space, device):
    rgb = np.abs(noise((61, 83, 3), "float32")).clip(0, 1)
    rgb[:5] = rgb[:5, :, :1]
    to, back = codes(space)
    wanted = opencv(to, rgb)
    np.testing.assert_allclose(convert(to, rgb, device), wanted, rtol=0, atol=(1e-4))
    np.testing.assert_allclose(convert(back, wanted, device), opencv(back, wanted), atol=2e-6)
    np.testing.assert_allclose(convert(back, convert(to, rgb, device), device), rgb, atol=2e-6)


@pytest.mark.parametrize("space", ("Lab", "Luv"))
def test_float_lab_and_luv_are_their_formulas(space, device):
    rgb = np.concatenate([dense()[::8] / np.float32(255), noise((40, 512, 3), "float32")])
    to, back = codes(space)
    # Floats past 0 to 1 are cut, as in OpenCV.
    inside = rgb.clip(0, 1)
    wanted = lab_and_luv64(inside.astype(np.float64))[space]
    np.testing.assert_allclose(convert(to, rgb, device), wanted, rtol=0, atol=5e-4)
    np.testing.assert_allclose(
        convert(back, wanted.astype(np.float32), device), inside, rtol=0, atol=3e-5
    )


@pytest.mark.parametrize(
    "code",
    ("RGB2BGR", "RGB2RGBA", "RGBA2RGB", "RGB2BGRA", "BGRA2RGB", "RGBA2BGRA", "GRAY2RGB")
    + ("GRAY2RGBA", "RGBA2GRAY", "BGRA2GRAY"),
)
@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32"))
def test_moved_channels_are_opencv_s(code, dtype, device):
    source = code.partition("2")[0]
    channels = {"GRAY": 1, "RGB": 3, "BGR": 3}.get(source, 4)
    for size in SIZES:
        array = noise((*size, channels), dtype)
        got, wanted = convert(code, array, device), opencv(code, array)
        if "2GRAY" in code and dtype == "float32":
            assert difference(got, wanted).max() <= 2.5e-7
        else:
            assert_same(got, wanted.reshape(got.shape))


@pytest.mark.parametrize("space", SPACES)
def test_the_other_order_is_a_swap_before_or_behind(space):
    for dtype in ("uint8", "float32"):
        array = noise((17, 211, 3), dtype)
        to, back = (code.lower() for code in codes(space))
        swapped = array[..., ::-1].copy()
        assert_same(convert(to.replace("rgb", "bgr"), swapped), convert(to, array))
        assert_same(
            convert(back.replace("rgb", "bgr"), array), convert(back, array)[..., ::-1].copy()
        )


@pytest.mark.parametrize(
    "code", ("rgb2hsv", "hls2rgb", "rgb2lab", "yuv2rgb", "bgr2xyz", "rgb2gray")
)
def test_alpha_stays(code, device):
    for dtype in ("uint8", "float32"):
        array = noise((17, 211, 4), dtype)
        got = convert(code, array, device)
        assert_same(got[..., -1].copy(), array[..., 3].copy())
        assert_same(got[..., :-1].copy(), convert(code, array[..., :3].copy(), device))
    gray = noise((9, 150, 2), "uint8")
    assert_same(convert("gray2rgb", gray, device), gray[..., [0, 0, 0, 1]])


@pytest.mark.parametrize(
    "code, shape, dtype, words",
    (
        ("rgb2hsv", (5, 5, 1), "uint8", "needs 3 or 4 channels, got 1"),
        ("gray2rgb", (5, 5, 3), "uint8", "needs 1 or 2 channels, got 3"),
        ("rgba2rgb", (5, 5, 3), "uint8", "needs 4 channels, got 3"),
        ("rgb2rgba", (5, 5, 4), "uint8", "needs 3 channels, got 4"),
        ("lab2bgr", (5, 5, 3), "uint16", "needs uint8 or float32, got uint16"),
    ),
)
def test_images_a_code_is_not_for_are_refused(code, shape, dtype, words):
    with pytest.raises(ParameterError, match=f"^cvtcolor: code {code} {words}"):
        convert(code, noise(shape, dtype))


MATRIX = np.array([[1.1, 0.1, 0.0, 3.0], [0.0, 0.9, 0.2, -4.0], [0.1, 0.0, 1.0, 5.0]])


@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32"))
def test_color_twist_is_its_formula(dtype, device):
    for size in SIZES:
        array = noise((*size, 4), dtype)
        exact = array[..., :3].astype(np.float64) @ MATRIX[:, :3].T + MATRIX[:, 3]
        got = run("color_twist", array, {"matrix": MATRIX}, device)
        assert_same(got[..., 3].copy(), array[..., 3].copy())
        limit = 1e-5 if dtype == "float32" else 0.5 + 1e-2
        low, high = (-np.inf, np.inf) if dtype == "float32" else (0, TOP[dtype])
        assert np.abs(got[..., :3] - exact.clip(low, high)).max() <= limit


def test_a_matrix_may_be_given_in_several_ways():
    array = noise((9, 9, 3), "uint8")
    wanted = run("color_twist", array, {"matrix": MATRIX})
    text = ";".join(",".join(map(str, row)) for row in MATRIX.tolist())
    for matrix in (MATRIX.tolist(), MATRIX.ravel().tolist(), text, text.replace(";", ",")):
        assert_same(run("color_twist", array, {"matrix": matrix}), wanted)
    for bad in ((1, 2, 3), "1,2", MATRIX[:, :3]):
        with pytest.raises(ParameterError, match="color-twist: matrix must be 3 rows of 4"):
            run("color_twist", array, {"matrix": bad})
    with pytest.raises(ParameterError, match="color-twist: the image must have 3 or 4"):
        run("color_twist", noise((9, 9, 1), "uint8"), {"matrix": MATRIX})


@pytest.mark.parametrize("factor", (0, 0.3, 1, 1.7, 20))
@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32"))
def test_adjust_saturation_is_torchvision_s(dtype, factor, device):
    array = noise((61, 83, 4), dtype)
    if dtype == "uint8":
        array[:20] = np.dstack([photograph()[:20, :83], array[:20, :, 3]])
    v = array[..., :3].astype(np.float64)
    gray = v @ [0.2989, 0.587, 0.114]
    exact = (factor * v + (1 - factor) * gray[..., None]).clip(0, TOP[dtype])
    got = run("adjust_saturation", array, {"factor": factor}, device)
    assert_same(got[..., 3].copy(), array[..., 3].copy())
    limit = 2e-5 if dtype == "float32" else 0.5 + 1e-2 * (1 + factor)
    assert np.abs(got[..., :3] - exact).max() <= limit


def turned64(rgb, factor):
    """torchvision's adjust_hue: to HSV, the hue moved, and back; samples from 0 to 1."""
    high, low = rgb.max(-1), rgb.min(-1)
    spread = high - low
    safe = np.where(spread == 0, 1, spread)
    r, g, b = np.moveaxis(rgb, -1, 0)
    hue = np.where(high == r, (g - b) / safe, 2 + (b - r) / safe)
    hue = np.where((high != r) & (high != g), 4 + (r - g) / safe, hue)
    hue = np.where(spread == 0, 0, hue) / 6
    hue = np.mod(np.mod(hue, 1) + factor, 1)
    s = np.where(high == 0, 0, spread / np.where(high == 0, 1, high))
    sector, part = np.floor(hue * 6).astype(int) % 6, hue * 6 - np.floor(hue * 6)
    p, q, t = high * (1 - s), high * (1 - s * part), high * (1 - s * (1 - part))
    table = np.stack([[high, q, p, p, t, high], [t, high, high, q, p, p], [p, p, t, high, high, q]])
    return np.stack([np.choose(sector, list(channel)) for channel in table], -1)


@pytest.mark.parametrize("factor", (0, 0.2, -0.5, 0.5, 1 / 3, -0.07))
@pytest.mark.parametrize("dtype", ("uint8", "uint16", "float32"))
def test_adjust_hue_is_torchvision_s(dtype, factor, device):
    array = dense()[::4].astype(dtype) * (257 if dtype == "uint16" else 1)
    array = (array / np.float32(255)).astype(dtype) if dtype == "float32" else array.astype(dtype)
    exact = turned64(array.astype(np.float64) / TOP[dtype], factor) * TOP[dtype]
    got = run("adjust_hue", array, {"factor": factor}, device)
    limit = 2e-6 if dtype == "float32" else 0.5 + 1e-6 * TOP[dtype]
    assert np.abs(got - exact).max() <= limit
    if factor == 0 and dtype != "float32":
        assert_same(got, array)


@pytest.mark.parametrize("name", ("adjust_hue", "adjust_saturation"))
def test_gray_has_no_colour_to_adjust(name, device):
    for channels in (1, 2):
        array = noise((17, 130, channels), "uint8")
        assert_same(run(name, array, {"factor": 0.3}, device), array)


FLOAT_CASES = (
    *(("cvtcolor", {"code": code.lower()}) for space in SPACES for code in codes(space)),
    ("cvtcolor", {"code": "rgb2gray"}),
    ("color_twist", {"matrix": MATRIX}),
    ("adjust_saturation", {"factor": 1.7}),
    ("adjust_hue", {"factor": 0.2}),
)


@pytest.mark.parametrize("name, case", FLOAT_CASES)
def test_special_floats_give_one_nan_and_leave_their_neighbours(name, case, device):
    array = sprinkle(noise((7, 300, 3), "float32"))
    plain = noise((7, 300, 3), "float32")
    mixed = np.where(np.arange(300)[:, None] % 2, plain, array)
    got = run(name, mixed, case, device)
    assert set(bits(got[np.isnan(got)]).tolist()) <= {0x7FC00000}
    assert_same(got[:, 1::2].copy(), run(name, plain, case, device)[:, 1::2].copy())


def test_every_step_of_a_chain_rounds(device):
    array = noise((2, 61, 130, 3), "uint8")
    steps = [
        operator_named("flip").step(axis=-1),
        operator_named("cvtcolor").step(code="rgb2hsv"),
        operator_named("channelreorder").step(order=(2, 0, 1)),
        operator_named("invert").step(),
        operator_named("adjust_hue").step(factor=0.1),
        operator_named("cvtcolor").step(code="rgb2gray"),
    ]
    wanted = array
    for step in steps:
        wanted = run_chain(Chain((step,)), wanted)
    assert_same(run_chain(Chain(tuple(steps)), array, device), wanted)


GOLDEN = ROOT / "tests" / "data" / "cvcuda_color.npz"


def golden_cases():
    with np.load(GOLDEN) as stored:
        return [name for name in stored.files if name.startswith("out:")]


@pytest.mark.parametrize("case", golden_cases())
def test_cvcuda(case, device):
    with np.load(GOLDEN) as stored:
        name, source, params = case.removeprefix("out:").split("|")
        given, src, wanted = json.loads(params), stored[f"src:{source}"], stored[case]
    if name == "cvtcolor":
        given = {"code": given["code"].lower()}
    elif name == "reformat":
        given = {"layout": "planar"}
    elif name == "channelreorder":
        given = {"order": given["order"][: src.shape[-1]]}
    got = run(name, src, given, device)
    assert got.shape == wanted.shape
    off = difference(got, wanted).reshape(got.shape)
    if name in ("channelreorder", "convertto", "reformat"):
        assert not off.any()
    elif got.dtype != np.float32:
        assert off.max() <= 1
    elif "2Lab" in case:
        assert off.max() <= 3e-4
    else:
        assert off.max() <= 2e-6 * (360 if "2HSV" in case else 1)


def test_dense_is_what_it_says():
    array = dense()
    assert len(np.unique(array.reshape(-1, 3), axis=0)) > 700_000
    assert cvcli.as_tensor(array).shape == array.shape


@pytest.mark.parametrize("width", (80, 528, 531, 70))
def test_an_emulated_gpu_gives_the_same_bytes_in_any_alignment(width):
    """Rows of whole chunks go through registers; ends of rows, and others, do not."""
    array = noise((2, 5, width, 3), "uint8")
    for name, case in (
        ("adjust_saturation", {"factor": 1.7}),
        ("cvtcolor", {"code": "rgb2gray"}),
        ("cvtcolor", {"code": "rgb2rgba"}),
    ):
        emulator.compare(name, array, **case)
    emulator.compare("adjust_saturation", noise((2, 5, width, 3), "float32"), factor=0.4)
