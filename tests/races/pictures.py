"""Pictures to tell right from wrong by, and tensors that hold them."""

from __future__ import annotations

import numpy as np
from conftest import noise

import cvcli
from races.simulated import POISON

PICTURE, OTHER = noise((61, 83, 3), "uint8", 1), noise((61, 83, 3), "uint8", 2)
SHAPE = PICTURE.shape


def half_turn(array):
    return np.ascontiguousarray(array[::-1, ::-1])


def on(place, picture):
    """A tensor of ours that holds a picture, with nothing pending."""
    src = cvcli.as_tensor(picture.copy()).to(place)
    tensor = cvcli.posterize(src, 16)
    for pending in (src, tensor):
        pending.buffer.synchronize()
    return tensor


def poisoned(place):
    """A target that holds poison: an array of the user's on the CPU, memory of ours on a GPU."""
    poison = np.full(SHAPE, POISON, np.uint8)
    return cvcli.as_tensor(poison) if place == "cpu" else on(place, poison)
