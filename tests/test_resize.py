"""resize against Pillow, OpenCV and float64, and how sizes are spelled."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from conftest import (
    CHANNELS,
    DTYPES,
    ROOT,
    assert_same,
    bits,
    fresh_python,
    noise,
    run,
    run_chain,
    run_ragged,
)
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import cvcli
from cvcli.core.chain import Chain
from cvcli.core.spec import ImageSpec
from cvcli.ops import parse_chain

FILTERS = ("box", "bilinear", "hamming", "bicubic", "lanczos")
MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
DATA = Path(__file__).parent / "data"


def photo(name, size):
    with Image.open(ROOT / "sample_images" / name) as image:
        return np.asarray(image.convert("RGB").crop((0, 0, *size)))


def resampling(name):
    return getattr(Image.Resampling, name.upper())


def image_of(array):
    channels = array.shape[2]
    return Image.fromarray(array[..., 0] if channels == 1 else array, MODES[channels])


def pillow(array, width, height, name):
    """Pillow's two passes as two calls, for it may choose their order."""
    image, filter = image_of(array), resampling(name)
    mode = image.mode
    if mode in ("LA", "RGBA") and (width, height) != image.size:
        image = image.convert({"LA": "La", "RGBA": "RGBa"}[mode])
    image = image.resize((width, image.height), filter).resize((width, height), filter)
    return np.asarray(image.convert(mode)).reshape(height, width, array.shape[2])


def pillow_float(array, width, height, name):
    """Each channel in float32 with double sums, by Pillow."""
    planes = [Image.fromarray(plane) for plane in np.moveaxis(array.astype(np.float32), 2, 0)]
    filter = resampling(name)
    done = [p.resize((width, p.height), filter).resize((width, height), filter) for p in planes]
    return np.stack([np.asarray(plane) for plane in done], axis=2).astype(np.float64)


def resized(array, width, height, **options):
    return run("resize", array, {"width": width, "height": height, **options})


sizes = st.one_of(st.integers(1, 4), st.integers(1, 60), st.integers(1, 170))


@pytest.mark.filterwarnings("ignore:'mode' parameter is deprecated")
@pytest.mark.parametrize("name", FILTERS)
@given(sizes, sizes, sizes, sizes, st.sampled_from(CHANNELS))
def test_bytes_are_those_of_pillow(name, height, width, to_height, to_width, channels):
    array = noise((height, width, channels), "uint8")
    wanted = pillow(array, to_width, to_height, name)
    assert_same(resized(array, to_width, to_height, filter=name), wanted)


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize(
    "size", ((300, 200), (150, 100), (77, 51), (901, 613), (300, 77), (77, 200), (224, 224))
)
def test_photographs_in_one_call_of_pillow(name, size):
    array = photo("chelsea.png", (300, 200))
    lost = 200 - size[1], 300 - size[0]
    # Pillow 13 takes columns first where it loses many more rows than columns.
    assert lost[0] <= 0 or lost[0] <= 2 * lost[1] or size[0] == 300
    wanted = np.asarray(Image.fromarray(array).resize(size, resampling(name)))
    assert_same(resized(array, *size, filter=name), wanted)


@pytest.mark.filterwarnings("ignore:'mode' parameter is deprecated")
@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("shape", ((4000, 3), (3, 4000), (1, 4000), (700, 600)))
def test_huge_factors(name, shape):
    for channels in (1, 4):
        array = noise((*shape, channels), "uint8")
        assert_same(resized(array, 1, 1, filter=name), pillow(array, 1, 1, name))
        assert_same(resized(array, 2, 3, filter=name), pillow(array, 2, 3, name))
    for dtype in ("uint16", "float32"):
        array = noise((*shape, 1), dtype)
        got = resized(array, 1, 1, filter=name)
        wanted = pillow_float(array, 1, 1, name)
        assert abs(got - wanted).max() <= (1 if dtype == "uint16" else 1e-4)


@pytest.mark.filterwarnings("ignore:'mode' parameter is deprecated")
@given(sizes, sizes, sizes, sizes, st.sampled_from(CHANNELS))
def test_nearest_is_pillow_s(height, width, to_height, to_width, channels):
    array = noise((height, width, channels), "uint8")
    wanted = image_of(array).resize((to_width, to_height), Image.Resampling.NEAREST)
    wanted = np.asarray(wanted).reshape(to_height, to_width, channels)
    assert_same(resized(array, to_width, to_height, filter="nearest"), wanted)
    for dtype in ("uint16", "float32"):
        got = resized(array.astype(dtype), to_width, to_height, filter="nearest")
        assert_same(got, wanted.astype(dtype))


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("size", ((83, 61), (40, 61), (83, 9), (31, 20), (130, 99), (1, 1)))
def test_other_dtypes_are_rounded_once(name, size):
    for channels in (1, 3):
        for dtype in ("uint16", "float32"):
            array = noise((61, 83, channels), dtype)
            wanted = pillow_float(array, *size, name)
            got = resized(array, *size, filter=name)
            assert got.dtype == dtype
            if dtype == "uint16":
                # Their sums are exact to some 2^-7; 65535 values round alike but in rare places.
                wanted = np.clip(np.rint(wanted), 0, 65535)
                assert abs(got - wanted).max() <= 1
                assert np.mean(got != wanted) < 0.03
            else:
                np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", ((160, 120), (111, 77), (640, 451), (320, 100), (37, 240)))
def test_without_antialias_it_is_half_pixel_bilinear(dtype, size):
    top = {"uint8": 1, "uint16": 257, "float32": 1 / 255}[dtype]
    array = (photo("coffee.png", (320, 240)).astype(np.float64) * top).astype(dtype)
    got = resized(array, *size, antialias=False)
    wanted = cv2.resize(array, size, interpolation=cv2.INTER_LINEAR).astype(np.float64)
    assert abs(got - wanted).max() <= (1e-6 if dtype == "float32" else 1)


def test_without_antialias_enlarging_is_the_same():
    array = noise((31, 40, 3), "uint8")
    for name in FILTERS:
        big = {"width": 90, "height": 77, "filter": name}
        assert_same(run("resize", array, {**big, "antialias": False}), run("resize", array, big))


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_transparent_does_not_bleed(dtype):
    white = {"uint8": 255, "uint16": 65535, "float32": 1}[dtype]
    array = np.zeros((40, 40, 4), dtype)
    array[:, :20] = white, 0, 0, white
    array[:, 20:] = 0, white, 0, 0
    got = resized(array, 13, 11, filter="bilinear")
    seen = got[..., 3] > 0
    assert seen.any() and not seen.all() and not got[seen][:, 1].any()
    assert (abs(got[seen][:, 0].astype(float) - white) <= white * 1e-6).all()


@pytest.mark.parametrize("name", ("bilinear", "lanczos"))
@pytest.mark.parametrize("channels", (2, 4))
def test_alpha_of_more_bits_against_float64(name, channels):
    for dtype in ("uint16", "float32"):
        array = np.abs(noise((50, 37, channels), dtype))
        alpha = array[..., -1:].astype(np.float64)
        weighted = np.concatenate([array[..., :-1] * alpha, alpha], axis=2)
        done = pillow_float(weighted, 20, 33, name)
        wanted = np.concatenate([done[..., :-1] / done[..., -1:], done[..., -1:]], axis=2)
        solid = done[..., -1] > 0.1 * alpha.max()
        got = resized(array, 20, 33, filter=name)[solid]
        wanted = wanted[solid]
        if dtype == "uint16":
            assert abs(got - np.clip(np.rint(wanted), 0, 65535)).max() <= 1
        else:
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def golden_cases():
    with np.load(DATA / "golden_resize.npz") as stored:
        return list(stored.files)


@pytest.mark.parametrize("case", golden_cases())
def test_cvcuda(case):
    """Within 1 of CV-CUDA, which rounds elsewhere, except that it does not premultiply."""
    operator, name, params = case.removeprefix("out:").split("|")
    params = json.loads(params)
    filter = {"linear": "bilinear", "cubic": "bicubic"}.get(params["interp"], params["interp"])
    with np.load(DATA / "golden_resize.npz") as stored:
        wanted = stored[case].astype(np.float64)
    with np.load(DATA / "cvcuda_golden.npz") as stored:
        src = stored[f"src:{name}"]
    height, width = params["size"]
    got = resized(src, width, height, filter=filter, antialias=operator != "resize")
    different = abs(got - wanted)
    if name == "rgba":
        assert different[..., :3].max() > 1
        different = different[..., 3]
    assert different.max() <= (2e-6 if name == "rgbf" else 1)
    if filter == "nearest":
        assert different.max() == 0
    if operator == "pillowresize":
        assert np.mean(different > 0) < 0.01


def test_not_numbers_stay_where_weights_reach():
    array = np.full((20, 30, 3), 0.5, np.float32)
    array[10, 12, 1], array[3, 24, 0], array[3, 25, 0] = np.nan, np.inf, -np.inf
    for name in FILTERS:
        got = resized(array, 15, 40, filter=name)
        assert np.isnan(got[..., 1]).any() and np.isnan(got[..., 0]).any()
        assert not np.isnan(got[..., 2]).any()
        assert np.isfinite(got[:, :2]).all() and np.isfinite(got[34:]).all()
        assert set(bits(got[np.isnan(got)])) == {0x7FC00000}


@given(st.integers(1, 90), st.integers(1, 90), st.sampled_from(FILTERS), st.data())
def test_a_crop_of_a_result_is_made_alone(width, height, name, data):
    array = noise((47, 53, 3), data.draw(st.sampled_from(DTYPES)))
    whole = resized(array, width, height, filter=name)
    w, h = data.draw(st.integers(1, width)), data.draw(st.integers(1, height))
    x, y = data.draw(st.integers(0, width - w)), data.draw(st.integers(0, height - h))
    chain = parse_chain(
        f"resize {width}x{height}! --filter {name} | crop --x {x} --y {y} --width {w} --height {h}"
    )
    assert_same(run_chain(chain, array), whole[y : y + h, x : x + w])
    assert len(chain.plan(ImageSpec(*array.shape, array.dtype.name)).passes) == 1


CHAINS = (
    "flip --axis -1 | resize 50% --filter lanczos",
    "pad --top 3 --left 9 --value 7,8,9 | resize 31x17! | invert",
    "rotate --angle 90 | resize 40% | gamma-contrast --gamma 2 | flip --axis 1",
    "gamma-contrast --gamma 0.7 | channelreorder --order 2,1,0 | resize 130% --filter bicubic",
    "resize 50% | resize 300% --filter hamming | crop --x 3 --y 2 --width 20 --height 11",
    "resize 60% --antialias off | channelreorder --order 0,0,1,1 | resize x33 --filter nearest",
    "crop --x 5 --y 2 --width 40 --height 30 | resize 25x | solarize | reformat --layout planar",
)


@pytest.mark.parametrize("text", CHAINS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_chains_equal_their_steps(text, dtype):
    array = noise((61, 83, 3), dtype)
    chain, wanted = parse_chain(text), array
    for step in chain:
        wanted = run_chain(Chain((step,)), wanted)
    assert_same(run_chain(chain, array), wanted)
    batch = np.stack([array, array[::-1]])
    assert_same(run_chain(chain, batch)[0], wanted)


def test_steps_join_one_launch():
    chain = parse_chain("flip --axis 1 | resize 50% | invert | reformat --layout planar")
    assert chain.plan(ImageSpec(100, 200, 3, "uint8")).label == "flip + resize + invert + reformat"
    with_alpha = parse_chain("resize 50% --filter box").plan(ImageSpec(100, 200, 4, "uint16"))
    assert len(with_alpha.passes) == 1


def test_the_same_size_is_a_copy():
    array = noise((17, 11, 4), "uint8")
    assert_same(resized(array, 11, 17, filter="lanczos"), array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ragged_batches_rows_with_gaps_and_what_is_read(dtype):
    arrays = [noise(shape, dtype) for shape in ((1, 1, 3), (90, 7, 3), (17, 111, 3), (64, 64, 3))]
    for text in ("resize 33x21!", "resize 50% --filter lanczos", "resize x90 --filter bicubic"):
        chain = parse_chain(text)
        wanted = [run_chain(chain, array) for array in arrays]
        for got, one in zip(run_ragged([chain] * 4, arrays), wanted, strict=True):
            assert_same(got, one)
    whole = noise((40, 50, 3), dtype)
    before, part = whole.copy(), whole[3:30, 4:41]
    got = cvcli.resize(cvcli.as_tensor(part), 20, 50).numpy()
    assert_same(got, resized(np.ascontiguousarray(part), 20, 50))
    assert_same(whole, before)


def test_every_build_gives_the_same():
    code = (
        "import hashlib, numpy as np, cvcli; from conftest import noise\n"
        "from cvcli.devices.cpu import simd_level\n"
        "digest = hashlib.sha256()\n"
        "for dtype in ('uint8', 'uint16', 'float32'):\n"
        "    for c in (1, 2, 3, 4):\n"
        "        src = cvcli.as_tensor(noise((131, 157, c), dtype))\n"
        "        for size in ((78, 66), (200, 31), (300, 290)):\n"
        "            out = cvcli.resize(src, *size, filter='lanczos')\n"
        "            digest.update(out.numpy().tobytes())\n"
        "print(simd_level(), digest.hexdigest())"
    )
    best = fresh_python("from cvcli.devices.cpu import simd_level; print(simd_level())")
    levels = ("baseline", "avx2", "avx512")
    levels = levels[: levels.index(best) + 1]
    found = [fresh_python(code, CVCLI_SIMD=level).split() for level in levels]
    assert [level for level, _ in found] == list(levels)
    assert len({digest for _, digest in found}) == 1
