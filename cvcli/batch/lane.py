"""One lane of the GPU's codecs: a batch from files to files, or to pixels, on one stream."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby

from cvcli.batch.flight import upload
from cvcli.batch.slots import Slot
from cvcli.codecs.gpu import DeviceImage, borrow
from cvcli.core.engine import Engine
from cvcli.core.images import Images, Placed, pack, packed_nbytes
from cvcli.core.launch import run_plans
from cvcli.core.memory import Buffer
from cvcli.core.stream import Event, Stream
from cvcli.errors import DeviceError


@dataclass(slots=True)
class Trip:
    """A batch under way: what it was decoded to, what the chain made of it, and when."""

    slots: list[Slot]
    events: list[Event]
    begin: float
    decoded: Sequence[DeviceImage | None] = ()
    sources: Images | None = None
    results: Images | None = None
    codes: list[memoryview | None] = field(default_factory=list)
    """A file for each slot; None where its pixels are wanted, or the encoder failed."""
    encoding: float = 0.0
    """Seconds that encoding took."""
    pixels: Buffer | None = None
    """Host memory for the results without a file."""

    @property
    def coded(self) -> list[tuple[Slot, memoryview]]:
        """Slots with their files."""
        pairs = zip(self.slots, self.codes, strict=True)
        return [(slot, code) for slot, code in pairs if code is not None]

    @property
    def plain(self) -> list[tuple[Slot, Placed]]:
        """Slots without a file, with their place in ``pixels``."""
        slots = [slot for slot, code in zip(self.slots, self.codes, strict=True) if code is None]
        if not slots or self.pixels is None:
            return []
        placed = pack(self.pixels, [slot.plan.target for slot in slots]).placed()
        return list(zip(slots, placed, strict=True))

    def drop(self) -> None:
        """Let go of all memory on the device, which nothing may use any more."""
        self.decoded, self.sources, self.results = (), None, None


class Lane:
    """A stream with a decoder and an encoder; `DeviceError` where there are none."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.stream = Stream(engine.device.name)
        self._coder = borrow(engine.device.index)

    def close(self) -> None:
        """Wait for what is pending and let others have the codecs."""
        with suppress(DeviceError):
            self.stream.sync()
        self._coder.give_back()

    def start(self, slots: list[Slot]) -> Trip:
        """Begin a batch."""
        events = [Event(self.stream.device, timing=True) for _ in range(4)]
        events[0].record(self.stream)
        return Trip(slots, events, time.perf_counter())

    def decode(self, trip: Trip) -> list[Slot]:
        """Decode files; slots whose file can't be decoded leave the trip and are returned."""
        slots = trip.slots
        files = [slot.way.data or b"" for slot in slots]
        trip.decoded = self._coder.decode(files, self.stream.handle)
        good = [_is_meant(*pair) for pair in zip(slots, trip.decoded, strict=True)]
        trip.slots = [slot for slot, ok in zip(slots, good, strict=True) if ok]
        if trip.slots:
            trip.sources = _gathered(self.engine, trip.decoded, good)
        trip.events[1].record(self.stream)
        return [slot for slot, ok in zip(slots, good, strict=True) if not ok]

    def upload(self, trip: Trip, arena: Buffer) -> list[Slot]:
        """Copy pixels that were decoded on the CPU."""
        trip.sources = upload(self.engine, arena, trip.slots, self.stream)
        trip.events[1].record(self.stream)
        return []

    def run_chain(self, trip: Trip) -> None:
        """Queue the chain."""
        assert trip.sources is not None
        plans = [slot.plan for slot in trip.slots]
        targets = [plan.target for plan in plans]
        trip.results = pack(self.engine.allocate(packed_nbytes(targets)), targets)
        run_plans(self.engine, trip.sources, trip.results, plans, self.stream)
        trip.events[2].record(self.stream)

    def encode(self, trip: Trip) -> None:
        """Encode the results that are wanted as files; these are there when this returns."""
        assert trip.results is not None
        begin = time.perf_counter()
        base, placed = trip.results.buffer.pointer, trip.results.placed()
        wanted = [
            (place, slot.way.recipe, DeviceImage(base + p.offset, p.row_pitch, p.spec))
            for place, (slot, p) in enumerate(zip(trip.slots, placed, strict=True))
            if slot.way.recipe is not None
        ]
        trip.codes = [None] * len(trip.slots)
        if wanted:
            places, recipes, images = zip(*wanted, strict=True)
            found = self._coder.encode(images, recipes, self.stream.handle)
            for place, code in zip(places, found, strict=True):
                trip.codes[place] = code
        trip.encoding = time.perf_counter() - begin

    def download(self, trip: Trip) -> None:
        """Queue copies of the results without a file to host memory."""
        assert trip.results is not None
        results = trip.results
        rest = [p for p, code in zip(results.placed(), trip.codes, strict=True) if code is None]
        if rest:
            trip.pixels = self.engine.allocate_staging(packed_nbytes([p.spec for p in rest]))
            places = pack(trip.pixels, [p.spec for p in rest]).placed()
            moved = list(zip(rest, places, strict=True))
            # Neighbours stay neighbours, so each run of them is one copy.
            for _, group in groupby(moved, key=lambda pair: pair[0].offset - pair[1].offset):
                run = list(group)
                of, at = run[0][0].offset, run[0][1].offset
                nbytes = run[-1][0].offset + run[-1][0].spec.nbytes - of
                self.engine.copy(trip.pixels, results.buffer, nbytes, self.stream, at=at, of=of)
        trip.events[3].record(self.stream)


def _is_meant(slot: Slot, image: DeviceImage | None) -> bool:
    return image is not None and image.spec == slot.plan.source


def _gathered(engine: Engine, images: Sequence[DeviceImage | None], good: Sequence[bool]) -> Images:
    """Images that lie anywhere on the device as one batch, which keeps them."""
    kept = [image for image, ok in zip(images, good, strict=True) if ok and image is not None]
    base = min(image.pointer for image in kept)
    top = max(image.pointer + image.row_pitch * image.spec.height for image in kept)
    placed = tuple(Placed(image.spec, image.pointer - base, image.row_pitch) for image in kept)
    return Images(engine.adopt(base, top - base, kept), placed[0], len(placed), 0, placed)
