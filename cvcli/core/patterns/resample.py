"""Separable resampling: each row is resized, then each column of the rows made."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_int32, c_void_p
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.resample_tiles import is_slow, tiling_of
from cvcli.core.taps import Span, Taps, taps_of
from cvcli.core.taps_tables import Tables, add_tables
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec


class ResampleAxis(Structure):
    """The tables of one axis; `cvcli.core.taps_tables` says what is in them."""

    _fields_ = (
        ("spans", c_void_p),
        ("weights", c_void_p),
        ("records", c_void_p),
        ("most", c_int32),
        ("words", c_int32),
        ("copies", c_int32),
        ("reach", c_int32),
        ("batch", c_int32),
        ("halves", c_int32),
    )


class ResampleParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/resample.h``."""

    _fields_ = (("frame", params.Frame), ("x", ResampleAxis), ("y", ResampleAxis))


class Resample(Pattern):
    """An image of another size; an axis that keeps its length is copied.

    ``source`` and ``target`` differ in their sizes only. Weights are 22-bit fixed point for
    uint8, whose rows are rounded and saturated between the axes; otherwise they are float32, and
    so is what is between. ``spans`` are what the result spreads over, of x and of y; by default
    all of the source.
    """

    name = "resample"
    windowed = True

    def __init__(
        self,
        source: ImageSpec,
        target: ImageSpec,
        filter: str,
        *,
        antialias: bool,
        spans: tuple[Span | None, Span | None] = (None, None),
    ) -> None:
        super().__init__(source, target)
        how = filter, antialias, source.dtype == "uint8"
        self.x = taps_of(source.width, target.width, *how, spans[0])
        self.y = taps_of(source.height, target.height, *how, spans[1])
        self.tiling = tiling_of(self.x, self.y, source)

    @property
    def is_slow(self) -> bool:
        """Whether two of them, an axis each, take less time."""
        return is_slow(self.x, self.y, self.tiling)

    @property
    def template(self) -> tuple[int, ...]:
        return self.tiling.template

    @property
    def blocks(self) -> int:  # type: ignore[override]
        return self.tiling.blocks

    @property
    def tile(self) -> tuple[int, int]:
        return self.tiling.tile

    @property
    def key(self) -> tuple[object, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        x = add_tables(block, self.x, self.tiling.words[0])
        y = add_tables(block, self.y, self.tiling.words[1])
        return lambda base: ResampleParams(
            self.frame,
            _axis(base, x, self.x, self.tiling.span, self.tiling.batch),
            _axis(base, y, self.y, self.tiling.pitch),
        )


def _axis(base: int, tables: Tables, taps: Taps, reach: int, batch: int = 0) -> ResampleAxis:
    return ResampleAxis(
        spans=base + tables.spans,
        weights=base + tables.weights,
        records=None if tables.records is None else base + tables.records,
        most=tables.most,
        words=tables.words,
        copies=int(taps.copies),
        reach=reach,
        batch=batch,
        halves=int(taps.halves),
    )
