"""From an image's statistics to what each channel is mapped by."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure, c_double, c_float, c_int32, c_int64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.core.patterns.histogram import LEVELS
from cvcli.core.patterns.summary import parts
from cvcli.core.spec import ImageSpec
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block

SUMMARIES = ("stretch", "contrast")
COUNTS = ("equalize", "otsu", "triangle")


@dataclass(frozen=True)
class Rule:
    """How an image's samples are to be mapped, by its own statistics.

    ``kind`` is ``stretch`` or ``contrast`` (with ``factor``), made from summaries, or
    ``equalize``, ``otsu`` or ``triangle``, made from histograms. For the last two ``values`` are
    what becomes of samples not above and above the threshold: -1 the sample, 256 the threshold.
    """

    kind: str
    factor: float = 0.0
    values: tuple[float, float] = (0.0, 0.0)

    @property
    def counts(self) -> bool:
        """Whether it is made from histograms."""
        return self.kind in COUNTS


class TablesParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/tables.h``."""

    _fields_ = (
        ("frame", params.Frame),
        ("samples", c_int64),
        ("factor", c_double),
        ("top", c_double),
        ("values", c_float * 4),
        ("from_counts", c_int32),
        ("kind", c_int32),
        ("measured", c_int32),
        ("channels", c_int32),
        ("levels", c_int32),
        ("floats", c_int32),
    )


class Tables(Pattern):
    """A table of 256 bytes a channel for uint8, a record of two doubles for other dtypes."""

    name = "tables"

    def __init__(self, statistics: ImageSpec, image: ImageSpec, measured: int, rule: Rule) -> None:
        if image.dtype == "uint8":
            target = ImageSpec(image.channels, LEVELS, 1, "uint8")
        else:
            target = ImageSpec(1, 4 * image.channels, 4, "uint8")
        super().__init__(statistics, target)
        self.image, self.measured, self.rule = image, measured, rule

    @property
    def tile(self) -> tuple[int, int]:
        return 1, 1

    @property
    def extent(self) -> tuple[int, int]:
        return 1, 1

    @property
    def key(self) -> tuple[object, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        image, rule = self.image, self.rule
        kinds = COUNTS if rule.counts else SUMMARIES
        packed = TablesParams(
            frame=self.frame,
            samples=image.height * image.width,
            factor=rule.factor,
            top=image.top,
            values=(*rule.values, 0.0, 0.0),
            from_counts=int(rule.counts),
            kind=kinds.index(rule.kind),
            measured=self.measured,
            channels=image.channels,
            levels=int(image.dtype != "uint8"),
            floats=int(image.dtype == "float32"),
        )
        assert packed.frame.height == parts(image)
        return lambda base: packed
