"""Laws of warps: what moves exactly, what is the same map, and the same bytes everywhere."""

from __future__ import annotations

import ctypes
from itertools import product

import emulator
import numpy as np
import pytest
from conftest import CHANNELS, DTYPES, assert_same, noise, run, run_chain, sprinkle, view
from hypothesis import given, settings
from hypothesis import strategies as st
from test_warp import BORDERS, FILTERS, SHEAR, TILT, apart, photograph

import cvcli
from cvcli.core.chain import Chain
from cvcli.core.patterns.warp import WarpParams
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError
from cvcli.ops import operator_named, parse_chain

STEEP = np.array([[1, 0.3, 1], [-0.2, 1, 2], [-0.02, 0.01, 1]])
# Every launch of the first kind runs in the emulator, of the second on a GPU.
CUDA = (emulator.NAME, pytest.param("cuda:0", marks=pytest.mark.gpu))


NUMPY_MODES = {
    "constant": "constant",
    "replicate": "edge",
    "reflect": "symmetric",
    "reflect101": "reflect",
    "wrap": "wrap",
}


@pytest.mark.parametrize("interp", FILTERS)
@pytest.mark.parametrize("border", BORDERS)
def test_whole_steps_move_pixels(border, interp):
    """Past the borders, which may lie many images away, and exactly."""
    for dtype, (dy, dx) in product(DTYPES, ((3, -5), (-40, 60), (0, 0))):
        array = noise((17, 11, 3), dtype)
        case = {"matrix": [[1, 0, dx], [0, 1, dy]], "interp": interp, "border": border}
        wide = np.pad(array, ((70, 70), (70, 70), (0, 0)), NUMPY_MODES[border])
        wanted = wide[70 - dy : 87 - dy, 70 - dx : 81 - dx]
        assert_same(run("warp_affine", array, case), wanted)


def test_the_value_of_a_border_has_the_dtype_of_the_image():
    for dtype, wanted in (("uint8", 64), ("uint16", 16384), ("float32", 0.25)):
        array = noise((5, 6, 3), dtype)
        case = {"matrix": [[1, 0, 50], [0, 1, 0]], "value": "25%"}
        assert (run("warp_affine", array, case) == np.asarray(wanted, dtype)).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_quarter_turns_are_exact(dtype):
    array = noise((17, 11, 3), dtype)
    for turns in range(-5, 6):
        for more in ({}, {"expand": True, "interp": "bicubic"}):
            got = run("rotate", array, {"angle": 90 * turns, **more})
            assert_same(got, np.rot90(array, turns))


def test_a_turn_with_expand_holds_the_whole_image():
    array = np.full((40, 100, 1), 1, np.float32)
    for angle in (10, 45, 100.5, 179, -30, 400, 1e6 + 1):
        got = run("rotate", array, {"angle": angle, "expand": True})
        turn = np.radians(angle)
        sides = abs(np.cos(turn)) * np.array([100, 40]) + abs(np.sin(turn)) * np.array([40, 100])
        assert got.shape == (*np.ceil(sides)[::-1].astype(int), 1)
        # White that went over the edge would be missing.
        assert abs(got.sum() - array.size) < 0.005 * array.size
        assert_same(got, run("rotate", array, {"angle": angle % 360, "expand": True}))


def test_a_turn_goes_counter_clockwise():
    array = np.zeros((101, 101, 1), np.uint8)
    array[48:53, 85:90] = 255
    y, x, _ = np.argwhere(run("rotate", array, {"angle": 60}) > 128).mean(axis=0)
    turned = np.degrees(np.arctan2(50 - y, x - 50))
    assert abs(turned - 60) < 1


def test_a_perspective_without_perspective_is_affine():
    array = photograph(61, 83)
    flat = np.vstack([SHEAR, [0, 0, 1]])
    wanted = run("warp_affine", array, {"matrix": SHEAR, "inverse": True})
    for scale in (1, 4, -0.5):
        case = {"matrix": flat * scale, "inverse": True}
        assert_same(run("warp_perspective", array, case), wanted)
    case = {"matrix": TILT * -8, "interp": "bicubic"}
    assert_same(
        run("warp_perspective", array, case),
        run("warp_perspective", array, {**case, "matrix": TILT}),
    )


def test_inverse_takes_the_matrix_the_other_way():
    array = photograph(61, 83)
    for name, matrix in (("warp_affine", SHEAR), ("warp_perspective", TILT)):
        full = matrix if len(matrix) == 3 else np.vstack([matrix, [0, 0, 1]])
        back = np.linalg.inv(full)[: len(matrix)]
        got = run(name, array, {"matrix": back, "inverse": True})
        assert apart(got, run(name, array, {"matrix": matrix})).max() <= 1


MATRIX = st.lists(st.floats(-1.5, 1.5), min_size=4, max_size=4)


@given(
    parts=MATRIX,
    shift=st.tuples(st.floats(-200, 200), st.floats(-200, 200)),
    tilt=st.one_of(st.just((0.0, 0.0)), st.tuples(st.floats(-0.01, 0.01), st.floats(-0.01, 0.01))),
    window=st.tuples(st.integers(0, 150), st.integers(0, 90), st.integers(1, 50)),
    interp=st.sampled_from(sorted(FILTERS)),
    border=st.sampled_from(sorted(BORDERS)),
    dtype=st.sampled_from(DTYPES),
)
@settings(max_examples=60)
def test_a_part_of_a_warp_has_the_bits_of_the_whole(
    parts, shift, tilt, window, interp, border, dtype
):
    """Crops join the warp before them, which then makes that part only; on both devices."""
    array = noise((23, 31, 2), dtype)
    x, y, side = window
    a, b, d, e = parts
    matrix = f"{a},{b},{shift[0]};{d},{e},{shift[1]};{tilt[0]},{tilt[1]},1"
    case = {"matrix": matrix, "inverse": True, "interp": interp, "border": border}
    warp = operator_named("warp_perspective").step(**case, width=200, height=140)
    crop = operator_named("crop").step(x=x, y=y, width=side, height=side)
    both = Chain((warp, crop))
    assert len(both.plan(ImageSpec(23, 31, 2, dtype)).passes) == 1
    whole = run_chain(Chain((warp,)), array)
    assert_same(run_chain(both, array), whole[y : y + side, x : x + side])


CHAINS = (
    "flip --axis 1 | warp-affine --matrix 0.9,-0.2,10;0.15,1.1,-3 | invert",
    "pad --top 3 --left 5 --value 9 | rotate --angle 20 | reformat --layout planar",
    "channelreorder --order 0,1,2,0 | rotate --angle 33 --interp bicubic | "
    "gamma-contrast --gamma 2",
    "gamma-contrast --gamma 2 | warp-perspective --matrix 1,.02,3;.01,1,2;1e-4,1e-4,1 | "
    "crop --width 40 --height 30 --x 13 --y 7 | channelreorder --order 1",
)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("text", CHAINS)
def test_a_chain_equals_its_steps(text, dtype):
    array = noise((2, 61, 83, 3), dtype)
    chain = parse_chain(text)
    assert len(chain.plan(ImageSpec(61, 83, 3, dtype)).passes) == 1
    wanted = array
    for step in chain.steps:
        wanted = run_chain(Chain((step,)), wanted)
    assert_same(run_chain(chain, array), wanted)
    assert str(parse_chain(str(chain))) == str(chain)


def test_batches_views_and_inputs(device):
    arrays = noise((3, 61, 83, 3), "uint8")
    case = {"matrix": SHEAR}
    got = run("warp_affine", arrays, case, device)
    for image, wanted in zip(arrays, got, strict=True):
        assert_same(run("warp_affine", image, case, device), wanted)
    whole = noise((40, 50, 3), "uint8")
    tensor = cvcli.as_tensor(whole).to(device)
    part = view(tensor, (30, 41, 3), tensor.strides, 2 * tensor.strides[0] + 5 * tensor.strides[1])
    packed = np.ascontiguousarray(whole[2:32, 5:46])
    assert_same(cvcli.warp_affine(part, **case).numpy(), run("warp_affine", packed, case))
    assert_same(tensor.numpy(), whole)


def test_what_is_not_finite_spoils_all_that_it_is_a_tap_of():
    array = np.ones((6, 6, 1), np.float32)
    array[2, 2], array[4, 4] = np.inf, np.array(0x7F800001, np.uint32).view(np.float32)
    back = {"matrix": [[1, 0, 0], [0, 1, 0]], "inverse": True}
    got = run("warp_affine", array, back)[..., 0]
    bad = np.zeros((6, 6), bool)
    bad[1:3, 1:3] = bad[3:5, 3:5] = True
    bad[2, 2] = False
    assert np.array_equal(np.isnan(got), bad)
    assert got[2, 2] == np.inf
    assert (got[np.isnan(got)].view(np.uint32) == 0x7FC00000).all()
    assert_same(run("warp_affine", array, {**back, "interp": "nearest"}), array)


ERRORS = (
    ("warp_affine", {"matrix": "1,2,3;2,4,6"}, "must have an inverse"),
    ("warp_affine", {"matrix": "1,0,0"}, "must be 2 rows of 3 numbers"),
    ("warp_affine", {"matrix": "1,0,0;0,1"}, "rows of equally many numbers"),
    ("warp_affine", {"matrix": "1,0,0;0,nan,0"}, "must be finite"),
    ("warp_affine", {"matrix": [1, 0, 0, 0, 1, 0]}, "must be rows of numbers"),
    ("warp_affine", {"matrix": "1,0,2e9;0,1,0"}, "must lead less than"),
    ("warp_affine", {"matrix": "1,0,0;0,1,0", "width": 0}, "width must be >= 1, got 0"),
    ("warp_affine", {"matrix": "1,0,0;0,1,0", "inverse": 2}, "inverse must be on or off"),
    ("warp_perspective", {"matrix": "1,0,0;0,1,0"}, "must be 3 rows of 3 numbers"),
    ("warp_perspective", {"matrix": "1,0,0;0,1,0;0,0,0", "inverse": True}, "not all 0"),
    ("warp_perspective", {"matrix": "1,0,0;0,1,0;0,0,0"}, "must have an inverse"),
    ("rotate", {"angle": "nan"}, "angle must be finite"),
    ("rotate", {"angle": 3, "value": (1, 2)}, "value must have 1 number"),
)


@pytest.mark.parametrize("name, case, message", ERRORS)
def test_errors(name, case, message):
    with pytest.raises(ParameterError, match=message) as caught:
        run(name, noise((5, 6, 3), "uint8"), case)
    assert str(caught.value).startswith(operator_named(name).command + ": ")


SAME = (
    ("rotate", {"angle": 30}),
    ("rotate", {"angle": -77.7, "expand": True, "border": "wrap", "interp": "bicubic"}),
    ("warp_affine", {"matrix": SHEAR, "interp": "nearest", "border": "reflect"}),
    ("warp_affine", {"matrix": [[9, 3, 0], [-5, 8, 2]], "inverse": True, "border": "wrap"}),
    ("warp_perspective", {"matrix": TILT}),
    ("warp_perspective", {"matrix": STEEP, "inverse": True, "border": "reflect101"}),
)


@pytest.mark.parametrize("where", CUDA)
@pytest.mark.parametrize("name, case", SAME)
def test_both_devices_give_the_same_bytes(name, case, where):
    """Images of more than a tile, sides that are no multiples of anything, special floats."""
    emulator.install()
    for dtype, channels, size in (
        ("uint8", 3, (130, 200)),
        ("uint8", 3, (67, 91)),
        ("uint8", 1, (67, 92)),
        ("uint16", 4, (45, 70)),
        ("float32", 3, (45, 71)),
    ):
        array = noise((*size, channels), dtype)
        if dtype == "float32":
            sprinkle(array)
        assert_same(run(name, array, case, where), run(name, array, case))


@pytest.mark.gpu
@pytest.mark.parametrize("interp", FILTERS)
@pytest.mark.parametrize("dtype, channels", list(product(DTYPES, CHANNELS)))
def test_large_images_on_a_gpu(dtype, channels, interp):
    array = noise((2, 1080, 1921, channels), dtype)
    for name, case in SAME:
        given = {**case, "interp": interp}
        assert_same(run(name, array, given, "cuda:0"), run(name, array, given))


def test_the_block_is_as_python_packs_it():
    assert ctypes.sizeof(WarpParams) == 176 and WarpParams.fixed.offset == 96


@pytest.mark.parametrize("name, case", SAME)
def test_blocks_take_tile_after_tile(name, case, monkeypatch):
    """As they must where there are more than the 65,535 of a grid's second and third axis."""
    emulator.install()
    grid_of = emulator.device.grid_of
    monkeypatch.setattr(emulator.device, "grid_of", lambda launch: (grid_of(launch)[0], 1, 1))
    array = noise((3, 140, 70, 3), "uint8")
    assert_same(run(name, array, case, emulator.NAME), run(name, array, case))
