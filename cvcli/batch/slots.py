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
    from cvcli.codecs.gpu import Recipe

# A JPEG is seldom larger than its pixels' bytes over this.
_CODED = 4


@dataclass(slots=True)
class Slot:
    """One image's place in a batch."""

    album: Album
    picture: Picture
    placed: Placed
    way: Way

    @property
    def job(self) -> Job:
        return self.album.job

    @property
    def plan(self) -> Plan:
        return self.picture.plan

    @property
    def nbytes(self) -> int:
        """Host memory this image keeps busy."""
        return slot_nbytes(self.plan, self.way)


@dataclass(frozen=True, slots=True)
class Way:
    """Where an image's codecs run: on the CPU, but for what is given here.

    ``data`` is the file, for the GPU to decode; by ``recipe`` it encodes the result.
    """

    data: bytes | None = None
    recipe: Recipe | None = None


ON_CPU = Way()


def slot_nbytes(plan: Plan, way: Way = ON_CPU) -> int:
    """Return the host memory that an image takes: before and after, pixels or a file."""
    source, target = aligned(plan.source.nbytes), aligned(plan.target.nbytes)
    before = source if way.data is None else len(way.data)
    return before + (target if way.recipe is None else target // _CODED)


@dataclass(slots=True)
class Batch:
    """Images of one dtype and channel count; filled by many decoders, then run as a whole.

    ``arena`` has ``room`` bytes for their pixels; there is none where the GPU decodes them all,
    and ``room`` is then what they may take there.
    """

    arena: Buffer | None
    limit: int
    room: int
    slots: list[Slot] = field(default_factory=list)
    used: int = 0
    decoding: int = 0
    closed: bool = False

    def has_room(self, spec: ImageSpec) -> bool:
        """Return whether one more image of ``spec`` fits."""
        return len(self.slots) < self.limit and self.used + spec.nbytes <= self.room

    def reserve(self, album: Album, picture: Picture, way: Way = ON_CPU) -> Slot:
        """Place one more image, to be decoded now."""
        spec = picture.plan.source
        slot = Slot(album, picture, Placed(spec, self.used, spec.row_nbytes), way)
        self.used += aligned(spec.nbytes)
        self.slots.append(slot)
        self.decoding += 1
        return slot

    @property
    def uses_gpu_codecs(self) -> bool:
        """Whether the GPU decodes or encodes any of the images."""
        return any(slot.way != ON_CPU for slot in self.slots)

    def array(self, slot: Slot) -> NDArray[np.generic]:
        """Return the slot's pixels as a ``(height, width, channels)`` array to decode into."""
        assert self.arena is not None
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
