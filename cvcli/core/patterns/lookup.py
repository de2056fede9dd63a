"""Each sample by the table or level of its own image; the operators that adapt to an image."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_int32
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cvcli.core.passes import Part, Pass, Pattern, first_pass, follow
from cvcli.core.patterns.histogram import Histogram
from cvcli.core.patterns.summary import Summary
from cvcli.core.patterns.tables import SUMMARIES, Rule, Tables
from cvcli.core.pixelwise import Sample, result_spec
from cvcli.core.spec import ImageSpec
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block

_TILE_ROWS = 8


class LookupParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/lookup.h``."""

    _fields_ = (("frame", params.Frame), ("kind", c_int32), ("reserved", c_int32))


class Lookup(Pattern):
    """The map by what `Tables` has made, which is its second source."""

    name = "lookup"
    joins = "nothing"

    def __init__(self, image: ImageSpec, rule: Rule) -> None:
        super().__init__(image, image)
        self.rule = rule

    @property
    def template(self) -> tuple[int, ...]:
        return (_TILE_ROWS,)

    @property
    def tile(self) -> tuple[int, int]:
        # A block takes whole rows: each has to load the image's tables first.
        return 1 << 30, _TILE_ROWS

    @property
    def key(self) -> tuple[object, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        kind = 0 if self.rule.counts else SUMMARIES.index(self.rule.kind)
        return lambda base: LookupParams(self.frame, kind)


@dataclass(frozen=True)
class Adapted(Part):
    """Statistics of an image, what they come to, and the map by that: three passes.

    ``measure`` is taken before the image is measured, such as a change to gray; the measure of
    one channel is for all of the image's.
    """

    rule: Rule
    measure: tuple[Sample, ...] = ()

    def extend(self, passes: tuple[Pass, ...], label: str) -> tuple[Pass, ...]:
        image = passes[-1].target
        if passes[-1].is_idle:
            passes = passes[:-1]
        at, measured = len(passes), image
        for step in self.measure:
            measured = result_spec(step, measured)
        statistics = (
            Histogram(measured)
            if self.rule.counts
            else Summary(measured, sums=self.rule.kind == "contrast")
        )
        tables = Tables(statistics.target, image, measured.channels, self.rule)
        measuring = replace(
            first_pass(image),
            reads=at,
            before=self.measure,
            pattern=statistics,
            target=statistics.target,
            label=label,
        )
        passes = (*passes, measuring)
        passes = (*passes, follow(passes, pattern=tables, target=tables.target))
        mapping = replace(first_pass(image), reads=at, aux=at + 2, label=f"{label} map")
        return (*passes, replace(mapping, pattern=Lookup(image, self.rule)))
