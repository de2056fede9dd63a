"""Blocks: what a launch points to, put on a device in one copy."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

from cvcli.core.passes import Pass
from cvcli.devices import params

if TYPE_CHECKING:
    from cvcli.core.engine import Engine
    from cvcli.core.memory import Buffer
    from cvcli.core.move import IndexMap, Run
    from cvcli.core.stream import Stream


class Block:
    """Bytes for a device; their addresses are known once the block has its buffer."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._known: dict[bytes, int] = {}

    def add(self, raw: bytes) -> int:
        """Append bytes, 16-byte aligned; return their offset. Equal bytes are kept once."""
        if raw not in self._known:
            self._known[raw] = self.reserve(len(raw))
            self.fill(self._known[raw], raw)
        return self._known[raw]

    def reserve(self, nbytes: int) -> int:
        """Append room that is filled later; return its offset."""
        self.data.extend(b"\0" * (-len(self.data) % 16))
        offset = len(self.data)
        self.data.extend(bytes(nbytes))
        return offset

    def fill(self, offset: int, raw: bytes) -> None:
        """Put bytes into reserved room."""
        self.data[offset : offset + len(raw)] = raw

    def upload(self, engine: Engine, buffer: Buffer, stream: Stream) -> None:
        """Queue the copy of the block to its buffer."""
        staging = engine.allocate_staging(len(self.data))
        ctypes.memmove(staging.pointer, bytes(self.data), len(self.data))
        engine.copy(buffer, staging, len(self.data), stream)


class Gather:
    """A pass's maps and constants in a block; None where they are not needed."""

    def __init__(self, item: Pass, block: Block) -> None:
        self._move, self._runs = item.move, item.runs
        run_x, run_y = item.runs
        self._x = _add_map(block, item.move.x, run_x)
        self._y = _add_map(block, item.move.y, run_y)
        constants = item.move.constants
        self._constants = block.add(constants.tobytes()) if len(constants) else None

    def move(self, base: int) -> params.Move:
        """Return the parameters of the gather, from the address of the block."""
        run_x, run_y = self._runs
        return params.Move(
            x=params.Axis(address(base, self._x), *run_x),
            y=params.Axis(address(base, self._y), *run_y),
            constants=address(base, self._constants),
            transpose=int(self._move.transpose),
        )


def _add_map(block: Block, index: IndexMap, run: Run) -> int | None:
    whole = run.end - run.begin == len(index)
    return None if whole else block.add(index.tobytes())


def address(base: int, offset: int | None) -> int | None:
    """Return the address of an offset, None of none."""
    return None if offset is None else base + offset
