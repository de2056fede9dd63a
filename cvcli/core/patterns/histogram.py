"""How often each of 256 values occurs in each channel of an image."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure
from typing import TYPE_CHECKING

from cvcli.core.patterns.summary import Summary
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block

LEVELS = 256


class HistogramParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/histogram.h``."""

    _fields_ = (("frame", params.Frame),)


class Histogram(Summary):
    """A row of 32-bit counts for each 16 rows of a uint8 image; each count is one pixel."""

    name = "histogram"
    record_pixels = LEVELS

    @property
    def template(self) -> tuple[int, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        return lambda base: HistogramParams(self.frame)
