"""Dtypes, normalising and layouts against NumPy, and where float results may go."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from conftest import DTYPES, ROOT, assert_same, noise, run, run_chain, run_ragged, sprinkle
from hypothesis import given, settings
from hypothesis import strategies as st

import cvcli
from cvcli.core.chain import Chain
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops import operator_named

SIZES = ((1, 1), (1, 37), (29, 1), (17, 11), (61, 83), (9, 1931))
LEVELS = {"uint8": 255, "uint16": 65535}


def saturated(values, dtype):
    """Float32 values in a dtype: half to even, then saturated, NaN 0."""
    if dtype == "float32":
        return values.astype(np.float32)
    whole = np.rint(np.nan_to_num(values.astype(np.float64), nan=0.0))
    return whole.clip(0, LEVELS[dtype]).astype(dtype)


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("target", DTYPES)
def test_convertto_is_its_formula(source, target, device):
    for channels in (1, 2, 3, 4):
        for size in SIZES:
            array = noise((*size, channels), source)
            for scale, offset in ((1, 0), (0.5, 7.25), (1 / 255, 0), (-257, 65535), (1e4, 0.3)):
                exact = array.astype(np.float32) * np.float32(scale) + np.float32(offset)
                case = {"dtype": target, "scale": scale, "offset": offset}
                assert_same(run("convertto", array, case, device), saturated(exact, target))


@pytest.mark.parametrize("target", DTYPES)
def test_convertto_of_special_floats_is_defined(target, device):
    array = sprinkle(noise((3, 700, 3), "float32"))
    with np.errstate(over="ignore", invalid="ignore"):
        exact = array * np.float32(200) + np.float32(0)
    exact[np.isnan(exact)] = np.uint32(0x7FC00000).view(np.float32)
    got = run("convertto", array, {"dtype": target, "scale": 200}, device)
    assert_same(got, saturated(exact, target))


def test_the_ways_that_the_help_names_are_inverse():
    array = np.arange(256, dtype=np.uint8).reshape(1, 256, 1)
    wide = run("convertto", array, {"dtype": "uint16", "scale": 257})
    assert wide.max() == 65535
    assert_same(run("convertto", wide, {"dtype": "uint8", "scale": 1 / 257}), array)
    floats = run("convertto", array, {"dtype": "float32", "scale": 0.00392156863})
    assert floats.max() == 1
    assert_same(run("convertto", floats, {"dtype": "uint8", "scale": 255}), array)


def normalized64(array, mean, factor, shift):
    return (array.astype(np.float64) - mean) * factor + shift


@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("channels", (1, 3))
def test_normalize_is_its_formula(source, channels, device):
    top = 1 if source == "float32" else LEVELS[source]
    mean, std = np.array([0.485, 0.456, 0.406]) * top, np.array([0.229, 0.224, 0.225]) * top
    mean, std = mean[:channels], std[:channels]
    for size in SIZES:
        array = noise((*size, channels), source)
        case = {"mean": mean, "std": std, "epsilon": 0.01, "global_scale": 2, "global_shift": 0.5}
        got = run("normalize", array, case, device)
        factor = 2 / np.sqrt(std**2 + 0.01)
        wanted = normalized64(array, mean, factor, 0.5)
        # Four roundings of terms as large as these.
        terms = np.abs(factor) * (np.abs(array) + mean) + 0.5
        assert got.dtype == np.float32
        assert (np.abs(got - wanted) <= 4 * terms * 2.0**-24).all()
        case = {"mean": mean, "scale": 0.5, "global_shift": 3, "dtype": source}
        wanted = (array - mean.astype(np.float32)) * np.float32(0.5) + np.float32(3)
        assert_same(run("normalize", array, case, device), saturated(wanted, source))


def test_normalize_is_within_2_ulp_of_cvcuda_s_order_of_operations(device):
    """CV-CUDA takes (v - mean) * scale * global_scale + global_shift one by one in float32."""
    array = noise((61, 83, 3), "uint8")
    mean, scale = np.float32([120.5, 115.25, 100]), np.float32([0.017, 0.018, 0.0166])
    v = (array.astype(np.float32) - mean) * scale * np.float32(1.7)
    got = run("normalize", array, {"mean": mean, "scale": scale, "global_scale": 1.7}, device)
    assert np.abs(got.view(np.int32) - v.view(np.int32)).max() <= 2


@pytest.mark.parametrize("channels", (2, 4))
def test_normalize_keeps_alpha_unless_it_has_numbers(channels, device):
    array = noise((17, 130, channels), "uint8")
    got = run("normalize", array, {"mean": 10, "std": 2, "global_shift": 1}, device)
    assert_same(got[..., -1].copy(), array[..., -1].astype(np.float32))
    assert_same(got[..., 0].copy(), (array[..., 0].astype(np.float32) - 10) * 0.5 + 1)
    given_all = {"mean": [10] * channels, "std": 2, "global_shift": 1}
    got = run("normalize", array, given_all, device)
    assert_same(got, (array.astype(np.float32) - 10) * np.float32(0.5) + 1)


@pytest.mark.parametrize(
    "case, words",
    (
        ({"mean": [1, 2]}, r"mean must have 1 number, or one a channel \(3\), got 2"),
        ({"std": 0}, "std must be positive, got 0"),
        ({"std": 1, "scale": 1}, "std and scale exclude each other"),
        ({"scale": 1e300, "global_scale": 1e300}, "the factor of a channel must be finite"),
    ),
)
def test_numbers_that_do_not_fit_are_refused(case, words):
    with pytest.raises(ParameterError, match=f"^normalize: {words}"):
        run("normalize", noise((3, 3, 3), "uint8"), case)


@pytest.mark.parametrize("dtype", DTYPES)
def test_reformat_only_moves(dtype, device):
    for channels in (1, 2, 3, 4):
        for size in SIZES:
            array = noise((2, *size, channels), dtype)
            tensor = cvcli.as_tensor(array).to(device)
            planar = cvcli.reformat(tensor, layout="planar")
            assert planar.layout == "NCHW"
            assert_same(planar.numpy(), array.transpose(0, 3, 1, 2).copy())
            assert_same(cvcli.reformat(planar, layout="interleaved").numpy(), array)
            assert cvcli.reformat(planar, layout="planar").shape == planar.shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ((2, 1, 0), (0,), (1, 1), (3, 2, 1, 0), (0, 0, 0, 2)))
def test_channelreorder_is_numpy_s(dtype, order, device):
    for channels in range(max(order) + 1, 5):
        for size in SIZES:
            array = noise((*size, channels), dtype)
            got = run("channelreorder", array, {"order": order}, device)
            assert_same(got, array[..., list(order)].copy())


def steps_of(channels):
    """Some steps before and after, each with the channels that it leaves."""
    named = operator_named
    moves = [
        (named("flip").step(axis=-1), channels),
        (named("flip").step(axis=1), channels),
        (named("crop").step(width=5, height=4, x=3, y=2), channels),
        (named("pad").step(top=2, left=3, right=1, border="reflect"), channels),
        (named("pad").step(top=1, left=1, right=9, value=7), channels),
    ]
    pixels = [
        (named("invert").step(), channels),
        (named("convertto").step(dtype="float32", scale=0.3), channels),
        (named("convertto").step(dtype="uint8", scale=0.7), channels),
        (named("convertto").step(dtype="uint16", scale=1.9), channels),
        (named("channelreorder").step(order=(0, 0, 0)), 3),
        (named("normalize").step(mean=3, std=2), channels),
    ]
    return moves + pixels


@given(data=st.data())
@settings(max_examples=60)
def test_a_chain_equals_its_steps(data):
    shape = data.draw(st.tuples(st.integers(6, 40), st.integers(8, 300), st.integers(1, 4)))
    array = noise(shape, data.draw(st.sampled_from(DTYPES)))
    steps, channels = [], shape[2]
    for _ in range(data.draw(st.integers(2, 5))):
        step, channels = data.draw(st.sampled_from(steps_of(channels)))
        steps.append(step)
        array_size = Chain(tuple(steps)).plan(spec_of(array)).target
        if array_size.height < 6 or array_size.width < 8:
            break
    planar = data.draw(st.booleans())
    if planar:
        steps.append(operator_named("reformat").step(layout="planar"))
    wanted = array
    for step in steps:
        wanted = run_chain(Chain((step,)), wanted)
    assert_same(run_chain(Chain(tuple(steps)), array), wanted)


def spec_of(array):
    return ImageSpec(*array.shape, array.dtype.name)


GPU_CHAINS = (
    ("flip -1, gray", (("flip", {"axis": -1}), ("channelreorder", {"order": 0}))),
    ("pad, floats", (("pad", {"left": 9, "value": 3}), ("convertto", {"dtype": "float32"}))),
    ("crop, planes", (("crop", {"x": 3, "width": 900, "height": 5}), ("normalize", {"mean": 1}))),
)


@pytest.mark.gpu
@pytest.mark.parametrize("steps", [steps for _, steps in GPU_CHAINS], ids=dict(GPU_CHAINS))
@pytest.mark.parametrize("dtype", DTYPES)
def test_parts_of_rows_are_the_same_on_a_gpu(steps, dtype):
    """Widths past one part of a row, and rows that start anywhere."""
    chain = Chain(tuple(operator_named(name).step(**case) for name, case in steps))
    planes = Chain((*chain.steps, operator_named("reformat").step(layout="planar")))
    for channels in (1, 2, 3, 4):
        for width in (903, 1920, 1921, 4097):
            array = noise((9, width, channels), dtype)
            for each in (chain, planes):
                assert_same(run_chain(each, array, "cuda:0"), run_chain(each, array))
        arrays = [noise((h, w, channels), dtype) for h, w in ((5, 903), (30, 1000), (7, 2001))]
        got = run_ragged([chain] * 3, arrays, "cuda:0")
        for one, wanted in zip(got, run_ragged([chain] * 3, arrays), strict=True):
            assert_same(one, wanted)


def command(*args):
    done = subprocess.run(
        [sys.executable, "-m", "cvcli", *map(str, args)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout + done.stderr


def test_formats_without_floats_refuse_them_with_a_tip(tmp_path):
    photo = ROOT / "sample_images" / "camera.png"
    status, said = command("convertto", "--dtype", "float32", photo, tmp_path / "out.png")
    assert status != 0 and "float32" in said and "tip:" in said
    assert not list(tmp_path.iterdir())
    target = tmp_path / "out.tiff"
    status, said = command("normalize", "--mean", "127.5", "--std", "50", photo, target)
    assert status == 0, said
    assert target.stat().st_size > 4 * 100 * 100
