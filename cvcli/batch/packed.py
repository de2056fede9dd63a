"""Sequences of many small records in little memory: a run may have any number of images."""

from __future__ import annotations

import marshal
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")
Record = tuple[Any, ...]
"""Numbers, texts and the like, and tuples and dicts of them."""

# Records of a block: more of them pack hardly better, and one that is looked up unpacks them all.
_BLOCK = 128


class Packed(Sequence[T], Generic[T]):
    """Items that are only added to; the newest are kept as they are, the others in packed blocks.

    ``pack`` gives an item's record and ``unpack`` an equal item of it. Names in a row are much
    alike, so that a record takes some 10 bytes. Nothing is locked.
    """

    def __init__(self, pack: Callable[[T], Record], unpack: Callable[[Record], T]) -> None:
        self._pack, self._unpack = pack, unpack
        self._blocks: list[bytes] = []
        self._tail: list[T] = []
        self._seen: tuple[int, list[Record]] = -1, []

    def append(self, item: T) -> None:
        """Add an item."""
        self._tail.append(item)
        if len(self._tail) >= 2 * _BLOCK:
            records = [self._pack(old) for old in self._tail[:_BLOCK]]
            self._blocks.append(zlib.compress(marshal.dumps(records), 1))
            del self._tail[:_BLOCK]

    def renew(self) -> None:
        """Let go of the newest items, for equal ones.

        Some bytes that lie among much that is freed keep all of that memory.
        """
        records = marshal.loads(marshal.dumps([self._pack(item) for item in self._tail]))
        self._tail = [self._unpack(record) for record in records]

    @property
    def packed(self) -> int:
        """How many items, from the first on, are given as equal ones and no longer themselves."""
        return len(self._blocks) * _BLOCK

    def __len__(self) -> int:
        return self.packed + len(self._tail)

    @overload
    def __getitem__(self, key: int) -> T: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[T]: ...
    def __getitem__(self, key: int | slice) -> T | Sequence[T]:
        if isinstance(key, slice):
            return self.pick(range(*key.indices(len(self))))
        number = range(len(self))[key]
        if number >= self.packed:
            return self._tail[number - self.packed]
        block = number // _BLOCK
        seen = self._seen
        if seen[0] != block:
            self._seen = seen = block, self._block(block)
        return self._unpack(seen[1][number % _BLOCK])

    def __iter__(self) -> Iterator[T]:
        for block in range(len(self._blocks)):
            yield from map(self._unpack, self._block(block))
        yield from self._tail

    def pick(self, numbers: Iterable[int]) -> list[T]:
        """Return the items of these numbers; each block is unpacked once."""
        blocks: dict[int, list[Record]] = {}
        found = []
        for number in numbers:
            block = number // _BLOCK
            if number >= self.packed:
                found.append(self._tail[number - self.packed])
                continue
            if block not in blocks:
                blocks[block] = self._block(block)
            found.append(self._unpack(blocks[block][number % _BLOCK]))
        return found

    def _block(self, block: int) -> list[Record]:
        records: list[Record] = marshal.loads(zlib.decompress(self._blocks[block]))
        return records
