"""Batches as a kernel sees them: one NHWC block, or a list of images of any sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cvcli.core.memory import Buffer
from cvcli.core.spec import ImageSpec


@dataclass(frozen=True, slots=True)
class Placed:
    """One image inside a buffer: its spec, byte offset, and bytes from row to row."""

    spec: ImageSpec
    offset: int
    row_pitch: int


@dataclass(frozen=True, slots=True)
class Images:
    """``count`` images of one spec, ``stride`` bytes apart, or the images of ``ragged``."""

    buffer: Buffer
    first: Placed
    count: int
    stride: int
    ragged: tuple[Placed, ...] | None = None

    def placed(self) -> Sequence[Placed]:
        """Return every image on its own."""
        if self.ragged is not None:
            return self.ragged
        first = self.first
        return [
            Placed(first.spec, first.offset + i * self.stride, first.row_pitch)
            for i in range(self.count)
        ]


ALIGNMENT = 64


def aligned(nbytes: int) -> int:
    """Round up to where the next image of a batch may start."""
    return -(-nbytes // ALIGNMENT) * ALIGNMENT


def pack(buffer: Buffer, specs: Sequence[ImageSpec], at: int = 0) -> Images:
    """Place packed images one after the other in a buffer, from byte ``at`` on."""
    placed = []
    for spec in specs:
        placed.append(Placed(spec, at, spec.row_nbytes))
        at += aligned(spec.nbytes)
    if len(set(specs)) == 1:
        return Images(buffer, placed[0], len(placed), aligned(specs[0].nbytes))
    return Images(buffer, placed[0], len(placed), 0, tuple(placed))


def packed_nbytes(specs: Sequence[ImageSpec]) -> int:
    """Return the bytes that `pack` needs."""
    return sum(aligned(spec.nbytes) for spec in specs)
