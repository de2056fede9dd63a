"""The images to be done: one by one, and any number of them in little memory."""

# ruff: noqa: PTH120

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

from cvcli.batch.packed import Packed
from cvcli.batch.places import Place, parent_of, place

Texts = tuple[int, str, str, str | None, tuple[str, ...], bool]
"""A job's index, input, output, format, further outputs, and whether the suffix settled it."""


@dataclass(frozen=True, slots=True)
class Job:
    """One image to do. ``index`` is its place among all files of the plan.

    ``format`` names the encoder where the output's suffix or ``--format`` settles it; None stands
    for the input's own format, known once its content is seen. ``more`` are the outputs of the
    pictures behind the first, where each has its own. With ``by_suffix`` nothing but the input's
    suffix has settled the format.
    """

    index: int
    input: Place
    output: Place
    format: str | None
    more: tuple[Place, ...] = ()
    by_suffix: bool = False

    @property
    def outputs(self) -> tuple[Place, ...]:
        """All outputs, most often one."""
        return (self.output, *self.more)


class Jobs(Sequence[Job]):
    """Jobs that are made when they are asked for: a place takes 400 bytes, its text packed 10."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, jobs: Iterable[Job] = ()) -> None:
        self.texts: Packed[Texts] = Packed(_same, _same)
        for job in jobs:
            self.add(job)

    def add(self, job: Job) -> None:
        """Take one more job."""
        self.texts.append(_texts_of(job))

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, key: int) -> Job: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[Job]: ...
    def __getitem__(self, key: int | slice) -> Job | Sequence[Job]:
        if isinstance(key, slice):
            return tuple(map(_job_of, self.texts[key]))
        return _job_of(self.texts[key])

    def __iter__(self) -> Iterator[Job]:
        return map(_job_of, self.texts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Jobs | tuple):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    def __repr__(self) -> str:
        return f"Jobs({list(self)})"


def _same(texts: Any) -> Any:
    return texts


def _job_of(texts: Texts) -> Job:
    index, source, output, format, more, by_suffix = texts
    return Job(index, place(source), place(output), format, tuple(map(place, more)), by_suffix)


def _texts_of(job: Job) -> Texts:
    more = tuple(map(os.fspath, job.more))
    source, output = os.fspath(job.input), os.fspath(job.output)
    return job.index, source, output, job.format, more, job.by_suffix


def texts_of(jobs: Sequence[Job]) -> Iterable[Texts]:
    """Return the texts of jobs, for which no places need be made."""
    return jobs.texts if isinstance(jobs, Jobs) else map(_texts_of, jobs)


def folders_of(jobs: Sequence[Job]) -> list[str]:
    """Return the folders of all outputs, each once."""
    found: set[str] = set()
    for _, _, output, _, more, _ in texts_of(jobs):
        for text in (output, *more):
            found.add(parent_of(text) if "://" in text else os.path.dirname(text))
    return sorted({os.fspath(place(folder)) for folder in found})
