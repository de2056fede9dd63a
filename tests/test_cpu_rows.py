"""Rows long enough for the CPU's vectors give what their pixels give one by one."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import noise

import cvcli
from cvcli.core.apply import apply
from cvcli.core.taps import nearest, taps_of
from cvcli.ops import parse_chain

CHANNELS = (1, 2, 3, 4)
STRAIGHT = (
    "invert",
    "solarize --threshold 30%",
    *(
        f"threshold --thresh 41% --maxval 90% --type {kind}"
        for kind in ("binary", "binary_inv", "trunc", "tozero", "tozero_inv")
    ),
    "threshold --thresh 100%",
    "threshold --thresh 0 --type trunc",
)
BENT = ("posterize --bits 3", "gamma-contrast --gamma 2.2", "brightness-contrast --contrast 1.5")


def run(text, image):
    return apply(parse_chain(text), cvcli.as_tensor(image)).numpy()


@pytest.mark.parametrize("text", STRAIGHT + BENT)
@pytest.mark.parametrize("channels", CHANNELS)
def test_large_images_of_16_bits_are_taken_by_the_whole_table(text, channels):
    """Tables of two straight pieces are not looked up where there are many samples."""
    table = run(text, np.arange(65536, dtype=np.uint16).reshape(16, 4096, 1)).reshape(-1)
    image = noise((701, 383, channels), "uint16", 3)
    image.reshape(-1)[:4] = 0, 65535, 26869, 26870
    wanted = table[image]
    if channels in (2, 4):
        wanted[..., -1] = image[..., -1]
    assert image.size > 1 << 18
    assert (run(text, image) == wanted).all()


def summed(image, taps):
    """Rows by 22-bit weights, rounded and cut off."""
    rows = np.zeros((image.shape[0], len(taps.first), image.shape[2]), np.int64)
    for tap in range(taps.most):
        places = np.minimum(taps.first + tap, image.shape[1] - 1)
        rows += taps.weights[:, tap].astype(np.int64)[None, :, None] * image[:, places]
    return np.clip((rows + (1 << 21)) >> 22, 0, 255).astype(np.uint8)


@pytest.mark.parametrize("channels", (1, 3))
@pytest.mark.parametrize("filter", ["bilinear", "bicubic", "lanczos"])
@pytest.mark.parametrize(("width", "height"), [(1, 1), (7, 5), (33, 9), (64, 40), (90, 3)])
def test_few_pixels_of_many_are_the_sums_of_their_taps(channels, filter, width, height):
    image = noise((97, 1603, channels), "uint8", 5)
    across = taps_of(1603, width, filter, False, True)
    down = taps_of(97, height, filter, False, True)
    wanted = summed(summed(image, across).swapaxes(0, 1), down).swapaxes(0, 1)
    text = f"resize {width}x{height}! --antialias off --filter {filter}"
    assert (run(text, image) == wanted).all()


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize(("width", "height"), [(1, 7), (301, 50), (40, 130), (700, 2)])
def test_the_nearest_pixels_are_those_of_the_index(channels, dtype, width, height):
    image = noise((61, 203, channels), dtype, 7)
    wanted = image[nearest(61, height)][:, nearest(203, width)]
    got = run(f"resize {width}x{height}! --filter nearest", image)
    assert got.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("width", [1, 7, 8, 9, 10, 15, 16, 17, 18, 31, 130, 517])
@pytest.mark.parametrize(
    "matrix",
    [
        "0.9,0.1,0.05,0;0.05,0.8,0.1,-3;0.1,0.05,0.9,9.5",
        "9,-3,0.05,10;0.05,0.8,-4,0;0.1,3e38,3e38,-5",
        "0.5,0,0,0;0,0.5,0,0.5;0,0,-1,255",
    ],
)
def test_colors_twisted_in_a_row_are_those_twisted_one_by_one(width, matrix):
    image = noise((3, width, 3), "uint8", 11)
    text = f"color-twist --matrix '{matrix}'"
    column = run(text, image.reshape(-1, 1, 3))
    assert (run(text, image) == column.reshape(image.shape)).all()


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize(
    "text",
    [
        "rotate --angle 30",
        "warp-affine --matrix '1.7,-0.3,10;0.3,2.9,-10' --border reflect",
        "warp-perspective --matrix '0.9,-0.3,9;0.3,0.9,-9;0.001,0.0005,1' --border replicate",
    ],
)
def test_a_warp_of_gray_pixels_is_that_of_each_channel(text, dtype):
    image = noise((131, 217, 3), dtype, 13)
    together = run(text, image)
    for channel in range(3):
        alone = run(text, np.ascontiguousarray(image[..., channel : channel + 1]))
        assert alone.tobytes() == np.ascontiguousarray(together[..., channel]).tobytes()
