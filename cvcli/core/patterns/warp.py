"""Warps: each pixel of the result is taken from the place of the source that a matrix gives."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from ctypes import Structure, c_double, c_float, c_int32, c_int64
from functools import lru_cache
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.devices import params
from cvcli.errors import ParameterError

if TYPE_CHECKING:
    import numpy as np

    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec
else:
    from cvcli.core.lazy import np

AFFINE, PERSPECTIVE = 0, 1
FILTERS = {"nearest": 0, "bilinear": 1, "bicubic": 2}
BORDERS = {"constant": 0, "replicate": 1, "reflect": 2, "reflect101": 3, "wrap": 4}
# Places are 32 bits wide, half of them to either side of 0.
_FARTHEST = 1 << 30
# Sides of the part of the result that a block makes, by how many words a pixel takes there: its
# source must fit into the room however it is turned.
_TILES = {1: (64, 64), 2: (32, 32), 3: (32, 32), 4: (32, 16)}
# A single byte stays one; the digits that a cubic needs leave room for fewer columns.
_BYTE_TILES = {"nearest": (128, 128), "bilinear": (128, 128), "bicubic": (64, 64)}

Matrix = tuple[float, float, float, float, float, float, float, float, float]


class WarpParams(Structure):
    """Mirrors the struct of ``kernels/core/warp.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("map", c_double * 9),
        ("fixed", c_int64 * 6),
        ("value", c_float * 4),
        ("kind", c_int32),
        ("filter", c_int32),
        ("border", c_int32),
        ("bank", c_int32),
    )


class Warp(Pattern):
    """A warp by a matrix, row by row, from pixels of the result to places of the source.

    Pixels are numbered from 0 and lie at whole places. ``value`` is the constant border's pixel in
    the dtype of the source. Raises `ParameterError` if an affine map leads too far away.
    """

    name = "warp"
    blocks = int(os.environ.get("WARP_BLOCKS", "4"))
    windowed = True

    def __init__(
        self,
        source: ImageSpec,
        target: ImageSpec,
        matrix: Matrix,
        interp: str,
        border: str,
        value: Sequence[float],
    ) -> None:
        super().__init__(source, target)
        self._matrix, self._value = matrix, (*value, 0.0, 0.0, 0.0, 0.0)[:4]
        self._interp = interp
        self._filter, self._border = FILTERS[interp], BORDERS[border]
        self._kind = AFFINE if matrix[6:8] == (0, 0) else PERSPECTIVE
        self._fixed = _fixed(matrix, target) if self._kind == AFFINE else (0,) * 6

    @property
    def template(self) -> tuple[int, ...]:
        return self._kind, self._filter, *self.tile

    @property
    def tile(self) -> tuple[int, int]:
        nbytes = self.source.pixel_nbytes
        return _BYTE_TILES[self._interp] if nbytes == 1 else _TILES[-(-nbytes // 4)]

    @property
    def key(self) -> tuple[object, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        packed = WarpParams(
            self.frame,
            self._matrix,
            self._fixed,
            self._value,
            self._kind,
            self._filter,
            self._border,
            self._bank(),
        )
        return lambda base: packed

    def _bank(self) -> int:
        """Return where rows of the source should start in shared memory."""
        m, height, width = self._matrix, self.target.height, self.target.width
        x, y = width / 2, height / 2
        w = m[6] * x + m[7] * y + m[8] or 1.0
        across = (m[0] - m[6] * (m[0] * x + m[1] * y + m[2]) / w) / w
        down = (m[3] - m[6] * (m[3] * x + m[4] * y + m[5]) / w) / w
        if self.source.pixel_nbytes == 1:
            across /= 4
        return _best_bank(round(across, 2), round(down, 2))


def _fixed(matrix: Matrix, target: ImageSpec) -> tuple[int, ...]:
    """Return an affine map in units of 2^-32."""
    for row in (matrix[:3], matrix[3:6]):
        reach = abs(row[0]) * target.width + abs(row[1]) * target.height + abs(row[2])
        if not reach < _FARTHEST:
            raise ParameterError(f"matrix must lead less than {_FARTHEST} px away, got {reach:g}")
    return tuple(round(value * 2**32) for value in matrix[:6])


@lru_cache(maxsize=1024)
def _best_bank(across: float, down: float) -> int:
    """Return the row pitch, modulo 32 words, at which a warp's loads collide least.

    Its 32 pixels lie ``across`` and ``down`` apart in the source. Rows start at 16-byte steps.
    """
    if not (abs(across) < 64 and abs(down) < 64):
        return 0
    lanes, starts = np.arange(32), np.linspace(0, 7, 8)[:, None] / 8
    x = np.floor(starts + lanes * across).astype(np.int64)
    y = np.floor(starts[::-1] + lanes * down).astype(np.int64)

    def collisions(pitch: int) -> int:
        # Loads of one word are one load: only different words of a bank collide.
        words = [np.unique(row) for row in x + y * (pitch + 4096)]
        return sum(int(np.bincount(row % 32, minlength=32).max()) for row in words)

    return min(range(0, 32, 4), key=collisions)
