"""What became of each input of a run, a row each."""

from __future__ import annotations

import base64
import os
import threading
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from heapq import merge
from itertools import chain
from operator import attrgetter
from typing import Any, Literal, overload

from cvcli.batch.jobs import texts_of
from cvcli.batch.packed import Packed, Record
from cvcli.batch.places import Place, place
from cvcli.batch.plan import Job, Plan, Problem

Status = Literal["ok", "failed", "skipped", "planned"]


@dataclass(slots=True)
class Row:
    """What became of one input."""

    index: int
    input: Place
    output: Place | None
    outputs: list[Place] | None = None
    status: Status = "planned"
    error: str | None = None
    tip: str | None = None
    width_in: int | None = None
    height_in: int | None = None
    width_out: int | None = None
    height_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    device: str | None = None
    host: str | None = None
    notes: list[str] = field(default_factory=list)
    ms: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The row as the schema has it."""
        row = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        row["outputs"] = None if self.outputs is None else list(map(str, self.outputs))
        return row | _path_fields("input", self.input) | _path_fields("output", self.output)


def _path_fields(name: str, path: Place | None) -> dict[str, str | None]:
    if path is None:
        return {name: None}
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return {name: text, f"{name}_b64": base64.b64encode(os.fsencode(text)).decode("ascii")}
    return {name: text}


# What a run finds out about an image.
_PLANNED = ("index", "input", "output", "outputs")
FOUND = [entry.name for entry in fields(Row) if entry.name not in _PLANNED]


def row_of(job: Job, skipped: bool = False) -> Row:
    """The row of an image that is to be done, or left alone."""
    outputs = list(job.outputs) if job.more else None
    return Row(job.index, job.input, job.output, outputs, "skipped" if skipped else "planned")


def failed_row(problem: Problem) -> Row:
    """The row of an image that fails before it is read."""
    message = problem.message
    return Row(problem.index, problem.input, problem.output, None, "failed", message, problem.tip)


def _record_of(row: Row) -> Record:
    output = None if row.output is None else str(row.output)
    outputs = None if row.outputs is None else [*map(str, row.outputs)]
    return row.index, str(row.input), output, outputs, *_found_in(row)


def _row_in(record: Record) -> Row:
    index, source, output, outputs, *found = record
    target = None if output is None else place(output)
    targets = None if outputs is None else [*map(place, outputs)]
    return Row(index, place(source), target, targets, *found)


_found_in = attrgetter(*FOUND)
# Rows that are looked through together.
_MANY = 1024


class Rows(Sequence[Row]):
    """The rows of a plan's inputs in its order, of which only those are whole that change.

    One that isn't begun is made from its job, one that is settled is packed, so that an image
    takes some 50 bytes besides its times. Every method takes the ``lock`` itself.
    """

    def __init__(self, plan: Plan) -> None:
        self.lock = threading.RLock()
        self._jobs = plan.jobs
        self._live: dict[int, Row] = {}
        self._settled: Packed[Row] = Packed(_record_of, _row_in)
        # Indexes in order, and of each the number among the settled, or below 0 of its job.
        self._index, self._number = array("i"), array("i")
        settled = sorted(
            chain(
                (row_of(job, skipped=True) for job in plan.skipped), map(failed_row, plan.problems)
            ),
            key=attrgetter("index"),
        )
        planned = ((texts[0], ~number) for number, texts in enumerate(texts_of(self._jobs)))
        done = ((row.index, number) for number, row in enumerate(settled))
        for index, number in merge(planned, done):
            self._index.append(index)
            self._number.append(number)
        for row in settled:
            self._settled.append(row)

    def __len__(self) -> int:
        return len(self._index)

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Row]: ...
    def __getitem__(self, key: int | slice) -> Row | Sequence[Row]:
        places = range(len(self))[key]
        if not isinstance(places, int):
            return self._at(places)
        with self.lock:
            number = self._number[places]
            at = self._index[places]
            return self._settled[number] if number >= 0 else self._begun(at, number)

    def __iter__(self) -> Iterator[Row]:
        return self._each(range(len(self)))

    def pick(self, indexes: Iterable[int]) -> Iterator[Row]:
        """Return the rows of these indexes, in their order in the plan."""
        with self.lock:
            return self._each([self._place(index) for index in sorted(indexes)])

    def _each(self, places: Sequence[int]) -> Iterator[Row]:
        for start in range(0, len(places), _MANY):
            yield from self._at(places[start : start + _MANY])

    def _at(self, places: Sequence[int]) -> list[Row]:
        """Return rows as they are now, each block of packed ones being unpacked once."""
        with self.lock:
            numbers = [self._number[at] for at in places]
            settled = iter(self._settled.pick(number for number in numbers if number >= 0))
            return [
                next(settled) if number >= 0 else self._begun(self._index[at], number)
                for at, number in zip(places, numbers, strict=True)
            ]

    def _begun(self, index: int, number: int) -> Row:
        return self._live.get(index) or row_of(self._jobs[~number])

    def _place(self, index: int) -> int:
        # Most often the whole plan is there, so that indexes are places.
        if index < len(self._index) and self._index[index] == index:
            return index
        at = bisect_left(self._index, index)
        if self._index[at : at + 1] != array("i", [index]):
            raise KeyError(index)
        return at

    def settled(self, start: int) -> Sequence[Row]:
        """Return the rows that were settled behind the first ``start``; one may come again."""
        with self.lock:
            return self._settled[start:]

    def begin(self, job: Job) -> None:
        """Make the row of a job, which else would be made from its number."""
        with self.lock:
            if job.index not in self._live and self._number[self._place(job.index)] < 0:
                self._live[job.index] = row_of(job)

    def row(self, index: int) -> Row:
        """Return the row of an index to be changed; it stays the same until it is settled."""
        row = self._live.get(index)
        if row is not None:
            return row
        with self.lock:
            at = self._place(index)
            number = self._number[at]
            if number < 0:
                return self._live.setdefault(index, row_of(self._jobs[~number]))
            row = self._settled[number]
            if number < self._settled.packed:
                # Very seldom: what is packed doesn't change, so it is taken anew.
                self._settle(at, row)
            return row

    def knows(self, index: int) -> bool:
        """Return whether there is a row of this index."""
        with self.lock:
            try:
                self._place(index)
            except KeyError:
                return False
        return True

    def settle(self, row: Row) -> None:
        """Take a row that is to change no more, or hardly."""
        with self.lock:
            self._live.pop(row.index, None)
            self._settle(self._place(row.index), row)

    def _settle(self, at: int, row: Row) -> None:
        self._number[at] = len(self._settled)
        self._settled.append(row)

    def append(self, row: Row) -> None:
        """Take one more row, wherever its index belongs."""
        with self.lock:
            at = bisect_left(self._index, row.index)
            self._index.insert(at, row.index)
            self._number.insert(at, -1)
            if row.status == "planned":
                self._live[row.index] = row
            else:
                self._settle(at, row)
