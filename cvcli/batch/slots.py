"""Batch slots: host memory that decoders write straight into, one arena a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cvcli.batch.plan import Job
from cvcli.core.images import Images, Placed, aligned
from cvcli.core.memory import Buffer
from cvcli.core.passes import Plan
from cvcli.core.spec import ImageSpec

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from cvcli.batch.album import Album, Picture


@dataclass(slots=True)
class Slot:
    """One image's place in a batch."""

    album: Album
    picture: Picture
    placed: Placed

    @property
    def job(self) -> Job:
        return self.album.job

    @property
    def plan(self) -> Plan:
        return self.picture.plan

    @property
    def nbytes(self) -> int:
        """Host memory this image keeps busy: its pixels before and after."""
        return slot_nbytes(self.plan)


def slot_nbytes(plan: Plan) -> int:
    """Return the host memory that an image's pixels take, before and after."""
    return aligned(plan.source.nbytes) + aligned(plan.target.nbytes)


@dataclass(slots=True)
class Batch:
    """Images of one dtype and channel count; filled by many decoders, then run as a whole."""

    arena: Buffer
    limit: int
    slots: list[Slot] = field(default_factory=list)
    used: int = 0
    decoding: int = 0
    closed: bool = False

    def has_room(self, spec: ImageSpec) -> bool:
        """Return whether one more image of ``spec`` fits."""
        return len(self.slots) < self.limit and self.used + spec.nbytes <= self.arena.nbytes

    def reserve(self, album: Album, picture: Picture) -> Slot:
        """Place one more image, to be decoded now."""
        spec = picture.plan.source
        slot = Slot(album, picture, Placed(spec, self.used, spec.row_nbytes))
        self.used += aligned(spec.nbytes)
        self.slots.append(slot)
        self.decoding += 1
        return slot

    def array(self, slot: Slot) -> NDArray[np.generic]:
        """Return the slot's pixels as a ``(height, width, channels)`` array to decode into."""
        return array_at(self.arena, slot.placed)


def array_at(buffer: Buffer, placed: Placed) -> NDArray[np.generic]:
    """Return a packed image in host memory as an array that keeps the memory in use."""
    import numpy as np

    memory = _HostMemory(buffer, placed)
    return np.asarray(memory).view(placed.spec.dtype).reshape(placed.spec.shape)


class _HostMemory:
    """Bytes for NumPy to look at; the array's base keeps the buffer from being reused."""

    def __init__(self, buffer: Buffer, placed: Placed) -> None:
        self.buffer = buffer
        self.__array_interface__ = {
            "version": 3,
            "shape": (placed.spec.nbytes,),
            "typestr": "|u1",
            "data": (buffer.pointer + placed.offset, False),
        }


def as_images(buffer: Buffer, placed: Sequence[Placed]) -> Images:
    """Return placed images as a batch: strided if they are alike and evenly spread, else ragged."""
    first = placed[0]
    stride = placed[1].offset - first.offset if len(placed) > 1 else 0
    even = all(
        item.spec == first.spec and item.offset == first.offset + i * stride
        for i, item in enumerate(placed)
    )
    return Images(buffer, first, len(placed), stride, None if even else tuple(placed))
