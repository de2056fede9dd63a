"""Stream-ordered memory: buffers that remember who wrote and who reads them, and their pool.

A dropped buffer goes back to its pool with the marks of its last writer and readers. The next
owner starts with those marks, so its first write waits for them: memory is handed out at once
and still never overwritten while another stream reads it.
"""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from cvcli.core.marks import Marks
from cvcli.core.stream import Stream
from cvcli.devices import Device
from cvcli.errors import OutOfMemoryError

_GRAIN = 512
_LENT_NBYTES = 256 << 20


class Buffer:
    """Bytes on a device (or staging bytes on the host), with their marks.

    Foreign memory has an ``owner``. Its producer may write it on a stream we can't name
    (``unordered``: only a device-wide wait is proof), and must be made to wait for our use of it
    on its ``producer`` stream. Our own memory may be ``lent`` to a library that uses it on streams
    of its own.
    """

    __slots__ = (
        "__weakref__",
        "_release",
        "block",
        "device",
        "lent",
        "marks",
        "nbytes",
        "owner",
        "pointer",
        "producer",
        "read_only",
        "unordered",
    )

    def __init__(
        self,
        device: Device,
        pointer: int,
        nbytes: int,
        marks: Marks,
        release: Callable[[Buffer], None],
        owner: object = None,
        block: Block | None = None,
    ) -> None:
        self.device, self.pointer, self.nbytes, self.block = device, pointer, nbytes, block
        self.marks, self._release, self.owner = marks, release, owner
        self.producer: Stream | None = None
        self.unordered = self.read_only = self.lent = False

    def __del__(self) -> None:
        # At the end of the process the memory goes anyway, and modules may be gone already.
        if sys is not None and not sys.is_finalizing():
            self._release(self)

    def synchronize(self) -> None:
        """Block the host until every pending use is over."""
        if self.unordered:
            self.device.synchronize()
            self.unordered = False
        self.marks.synchronize()


@dataclass(slots=True)
class Block:
    """Memory of a pool; buffers come and go, it stays."""

    pointer: int
    nbytes: int
    marks: Marks


@lru_cache(maxsize=4096)
def size_class(nbytes: int) -> int:
    """Round up to one of eight sizes an octave, so a reused block wastes at most an eighth."""
    nbytes = max(nbytes, _GRAIN)
    step = max(_GRAIN, 1 << max(0, nbytes.bit_length() - 4))
    return -(-nbytes // step) * step


class Pool:
    """Blocks of one kind of memory of one device, reused in stream order.

    ``limit`` bounds the bytes kept for reuse; what is in use is not bounded here. A block that
    was lent to another library may still be in use on streams we don't know, so it waits for a
    time when the whole device was idle: one such wait serves all that have come together.
    """

    def __init__(self, device: Device, staging: bool, limit: int) -> None:
        self._device, self._staging, self.limit = device, staging, limit
        self._free: dict[int, deque[Block]] = {}
        self._lent: list[Block] = []
        self._lent_nbytes = 0
        self._lock = threading.RLock()
        # The newest block of host memory may still be in the caches; the oldest one of a GPU is
        # the likeliest to be idle.
        self._newest = device.kind == "cpu"
        self._give_back = self._give
        self.held = 0
        self.used = 0

    def take(self, nbytes: int, *, idle: bool = False) -> Buffer:
        """Return a buffer of at least ``nbytes``, its content undefined.

        With ``idle`` no use of its memory is pending, so the host may touch it at once.
        """
        size = size_class(nbytes)
        if self._lent_nbytes > _LENT_NBYTES or self._lent_nbytes > self.limit:
            self._take_back()
        with self._lock:
            blocks = self._free.get(size)
            block = self._reuse(blocks, idle) if blocks else None
            self.used += size
        if block is None:
            block = self._fresh(size)
        return Buffer(
            self._device, block.pointer, nbytes, block.marks, self._give_back, None, block
        )

    def release(self) -> int:
        """Free every idle block after its last use; return the bytes freed."""
        self._take_back()
        with self._lock:
            blocks = [block for blocks in self._free.values() for block in blocks]
            self._free.clear()
            self.held = 0
        for block in blocks:
            block.marks.synchronize()
            self._free_raw(block.pointer)
        return sum(block.nbytes for block in blocks)

    def trim(self, limit: int) -> None:
        """Bound the bytes kept for reuse from now on; free what is idle above it."""
        self.limit = limit
        self._take_back()
        with self._lock:
            surplus = self._surplus()
        for old in surplus:
            self._free_raw(old.pointer)

    def _take_back(self) -> None:
        """Make what was lent free for reuse, after all that the device has been given so far."""
        with self._lock:
            blocks, self._lent, self._lent_nbytes = self._lent, [], 0
        if not blocks:
            return
        self._device.synchronize()
        with self._lock:
            for block in blocks:
                self._free.setdefault(block.nbytes, deque()).append(block)

    def _reuse(self, blocks: deque[Block], idle: bool) -> Block | None:
        # Waiting would be worse than new memory: what is waited for may wait for this thread.
        if idle and not blocks[-1 if self._newest else 0].marks.done():
            return None
        block = blocks.pop() if self._newest else blocks.popleft()
        self.held -= block.nbytes
        return block

    def _fresh(self, size: int) -> Block:
        try:
            return Block(self._allocate(size), size, Marks(None, {}))
        except BaseException:
            with self._lock:
                self.used -= size
            raise

    def _give(self, buffer: Buffer) -> None:
        block = buffer.block
        assert block is not None
        size = block.nbytes
        block.marks.retire()
        with self._lock:
            self.used -= size
            self.held += size
            if buffer.lent:
                self._lent.append(block)
                self._lent_nbytes += size
            else:
                blocks = self._free.get(size)
                if blocks is None:
                    blocks = self._free[size] = deque()
                blocks.append(block)
            if self.held <= self.limit:
                return
            surplus = self._surplus()
        for old in surplus:
            self._free_raw(old.pointer)

    def _surplus(self) -> list[Block]:
        """Take out idle blocks until the limit holds.

        Only blocks whose last use is over: this runs wherever a buffer happens to be dropped,
        a stream's own thread included, so it must not wait.
        """
        taken: list[Block] = []
        for size in sorted(self._free, reverse=True):
            blocks = self._free[size]
            while self.held > self.limit and blocks and blocks[0].marks.done():
                taken.append(blocks.popleft())
                self.held -= size
        return taken

    def _allocate(self, size: int) -> int:
        allocate = self._device.allocate_staging if self._staging else self._device.allocate
        try:
            return allocate(size)
        except OutOfMemoryError:
            if not self.release():
                raise
            return allocate(size)

    def _free_raw(self, pointer: int) -> None:
        free = self._device.free_staging if self._staging else self._device.free
        free(pointer)
