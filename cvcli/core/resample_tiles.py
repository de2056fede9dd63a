"""How the GPU cuts a resampling into tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cvcli.core.spec import ImageSpec
    from cvcli.core.taps import Taps


@dataclass(frozen=True, slots=True)
class Tiling:
    """The numbers a kernel is compiled for, the tile in pixels, and words in records of an axis."""

    template: tuple[int, ...]
    tile: tuple[int, int]
    words: tuple[int, int] = (0, 0)


def tiling_of(x: Taps, y: Taps, source: ImageSpec) -> Tiling:
    return Tiling((), (32, 8))
