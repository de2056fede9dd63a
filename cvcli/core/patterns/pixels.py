"""A map of whole pixels: each is read through a gather and taken through the pass's steps."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure
from dataclasses import replace
from math import gcd
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec


class PixelsParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/pixels.h``."""

    _fields_ = (("frame", params.Frame),)


_PARTS = 2  # of a warp, under way at a time
_STAGE_NBYTES = 1920  # kSegmentBytes of kernels/core/geometry.h


class Pixels(Pattern):
    """The identity as a pattern, for passes that are no plain map.

    ``read`` is what the pass reads, before its steps.
    """

    name = "pixels"
    blocks = 4

    def __init__(self, read: ImageSpec, target: ImageSpec) -> None:
        spec = replace(target, planar=False)
        super().__init__(spec, spec)
        nbytes = read.pixel_nbytes, target.pixel_nbytes
        most = _STAGE_NBYTES // max(nbytes)
        # A group of whole chunks a lane; or in sixteens, so that parts of an aligned row are
        # aligned.
        groups = 32 * max(16 // gcd(16, size) for size in nbytes)
        self._part = most // groups * groups or most // 16 * 16

    @property
    def template(self) -> tuple[int, ...]:
        return self._part, _PARTS

    @property
    def tile(self) -> tuple[int, int]:
        return self._part, 8 * _PARTS

    @property
    def key(self) -> tuple[object, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        return lambda base: PixelsParams(self.frame)
