"""Filters that go down strips on the GPU: more than one of them, whole or not, at once.

`test_emulated` has images smaller than a strip; here they are larger, their rows lie across words
or not, and sums of bytes are as large and as small as they get.
"""

from __future__ import annotations

import cv2
import emulator
import numpy as np
import pytest
from conftest import assert_same, noise, run_chain
from emulator import compile as compiling

from cvcli.core.spec import ImageSpec
from cvcli.core.tiles import UNROLLED, strip_of
from cvcli.devices import nvrtc
from cvcli.errors import DeviceError
from cvcli.ops import parse_chain

FILTERS = (
    "gaussian --size 5",
    "gaussian --size 15,3 --border constant --value 9",
    "sharpen --sigma 0.9 --border wrap",
    "averageblur --size 7,5",
    "averageblur --size 15 --border reflect",
    "morphology --operation dilate --size 5,15",
    "laplacian --ksize 3",
    "conv2d --kernel 0.5,1,0;0,-2,0;0,1,-0.7 --border wrap",
    "adjust-sharpness --factor 1.7",
    "median-blur --size 3",
    "median-blur --size 5",
    "median-blur --size 13",
)
# Rows of whole words and not; a strip of bytes is 160 pixels wide and at most 120 rows high.
SHAPES = ((150, 336, 3), (131, 221, 3))
# All weights count up to 64, the most that two sums a word have room for.
LARGEST = "8,8,8;8,0,8;8,8,8"
SMALLEST = "-8,-8,-8;-8,0,-8;-8,-8,-8"


@pytest.fixture(scope="module", autouse=True)
def _compiled():
    specs = (ImageSpec(*SHAPES[0], "uint8"), ImageSpec(40, 130, 1, "uint16"))
    plans = [parse_chain(text).plan(spec) for text in FILTERS for spec in specs]
    emulator.compile_all(list(emulator.kernels_of(plans, uniform=True)))


@pytest.mark.parametrize("text", FILTERS)
def test_strips_meet(text):
    chain = parse_chain(text)
    for shape in SHAPES:
        emulator.compare(chain, noise(shape, "uint8"))
    emulator.compare(chain, noise((40, 501, 1), "uint16"))


@pytest.mark.parametrize("window", ["--x 3 --y 75 --width 170", "--width 161"])
def test_a_window_is_cut_out_of_strips(window):
    chain = parse_chain(f"gaussian --size 5 | crop {window} --height 60 | invert")
    emulator.compare(chain, noise((150, 336, 3), "uint8"))


@pytest.mark.parametrize("kernel", [LARGEST, SMALLEST, "16,0,16;0,0,0;16,0,-16"])
def test_whole_sums_have_room(kernel):
    array = noise((40, 170, 3), "uint8")
    array[:, 20:60], array[:, 60:100] = 255, 0
    got = emulator.compare(parse_chain(f"conv2d --kernel {kernel}"), array)
    rows = np.array([[float(cell) for cell in row.split(",")] for row in kernel.split(";")])
    assert_same(got, cv2.filter2D(array, -1, rows, borderType=cv2.BORDER_REFLECT_101))


@pytest.mark.parametrize(
    "text, channels",
    [
        ("gaussian --size 11", 4),
        ("gaussian --size 13,1 --border constant --value 255", 2),
        ("gaussian --size 15,7 --sigma 4", 1),
        ("gaussian --size 15,3 --sigma 0.1", 3),
        ("sharpen --sigma 1.5 --border replicate", 3),
    ],
)
def test_bytes_weighed_four_at_once(text, channels):
    """Wide rows of bytes, whole and at the edges, white where sums are largest."""
    array = noise((11, 491 // channels, channels), "uint8")
    array[:4] = 255
    emulator.compare(text, array)


@pytest.mark.parametrize("factor", [0, 0.37, 3, 90])
def test_a_thirteenth_rounds_alike(factor):
    """Every sum of thirteen bytes there is, by integers and by floats."""
    sums = np.arange(3316)
    array = np.zeros((6, 3 * len(sums) + 1, 1), np.uint8)
    for place in range(9):
        weight = 5 if place == 4 else 1
        value = np.minimum(sums // weight, 255)
        array[1 + place // 3, place % 3 :: 3, 0][: len(sums)] = value
        sums = sums - weight * value
    emulator.compare("adjust-sharpness", array, factor=factor)


@pytest.mark.parametrize("size", [(11, 11), (13, 13), (13, 15), (15, 15)])
def test_means_of_large_windows_are_exact(size):
    array = noise((64, 170, 1), "uint8")
    array[:40, :90] = np.where(noise((40, 90, 1), "uint8", 1) > 250, 254, 255)
    got = emulator.compare("averageblur", array, size=size)
    exact = cv2.boxFilter(array, cv2.CV_64F, size, borderType=cv2.BORDER_REFLECT_101)
    assert_same(got[..., 0], np.rint(exact).astype(np.uint8))


def test_strips_are_whole_chunks_and_pixels():
    for channels in range(1, 5):
        for dtype in ("uint8", "uint16", "float32"):
            for radius in range(UNROLLED + 1):
                strip = strip_of(ImageSpec(9, 9, channels, dtype), radius, halves=2)
                samples = strip.width * channels
                assert samples % 48 == 0
                assert strip.threads * 4 >= samples
                assert strip.height % 8 == 0


FAULTS = (
    ("gaussian --size 5", "columns.take(filter, step);", "", "CPU"),
    ("laplacian", "copies_done();\n            __syncthreads();", "", "no barrier since"),
    ("averageblur --size 7", "return row * kPitch +", "return row * (kPitch - 8) +", "barrier|CPU"),
)


@pytest.mark.parametrize("text, right, wrong, message", FAULTS)
def test_a_fault_is_seen(text, right, wrong, message, monkeypatch):
    expand, found = nvrtc.expand, []

    def spoilt(source):
        found.append(right in expand(source))
        return expand(source).replace(right, wrong)

    monkeypatch.setattr(compiling, "_KEPT", {})
    monkeypatch.setattr(nvrtc, "expand", spoilt)
    with pytest.raises((DeviceError, AssertionError), match=message):
        emulator.compare(parse_chain(text), noise((45, 170, 3), "uint8"))
    assert found == [True]


@pytest.mark.gpu
@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_large_images_are_the_same_on_the_gpu(text, dtype):
    for shape in ((2, 1080, 1920, 3), (1, 517, 1003, 4), (3, 211, 997, 1)):
        array = noise(shape, dtype)
        chain = parse_chain(text)
        assert_same(run_chain(chain, array, "cuda:0"), run_chain(chain, array))
