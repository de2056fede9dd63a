"""A map of whole pixels: each is read through a gather and taken through the pass's steps."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import Structure
from dataclasses import replace
from typing import TYPE_CHECKING

from cvcli.core.passes import Pattern
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.blocks import Block
    from cvcli.core.spec import ImageSpec


class PixelsParams(Structure):
    """Mirrors the struct of ``kernels/core/patterns/pixels.h``."""

    _fields_ = (("frame", params.Frame),)


class Pixels(Pattern):
    """The identity as a pattern, for passes that are no plain map."""

    name = "pixels"

    def __init__(self, target: ImageSpec) -> None:
        spec = replace(target, planar=False)
        super().__init__(spec, spec)

    @property
    def tile(self) -> tuple[int, int]:
        return 128, 8

    @property
    def key(self) -> tuple[object, ...]:
        return ()

    def pack(self, block: Block) -> Callable[[int], Structure]:
        return lambda base: PixelsParams(self.frame)
