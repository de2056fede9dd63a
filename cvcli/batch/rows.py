"""What became of each input of a run, a row each."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from cvcli.batch.places import Place
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


def planned_rows(plan: Plan) -> list[Row]:
    """A row for each input of a plan, in its order."""
    rows = [row_of(job) for job in plan.jobs]
    rows += [row_of(job, skipped=True) for job in plan.skipped]
    rows += map(failed_row, plan.problems)
    return sorted(rows, key=lambda row: row.index)


def row_of(job: Job, skipped: bool = False) -> Row:
    """The row of an image that is to be done, or left alone."""
    outputs = list(job.outputs) if job.more else None
    return Row(job.index, job.input, job.output, outputs, "skipped" if skipped else "planned")


def failed_row(problem: Problem) -> Row:
    """The row of an image that fails before it is read."""
    message = problem.message
    return Row(problem.index, problem.input, problem.output, None, "failed", message, problem.tip)
