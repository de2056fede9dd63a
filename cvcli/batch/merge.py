"""One report of many: those of the shares of a plan become that of the whole."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any

from cvcli.batch.places import Place, place
from cvcli.batch.plan import Plan
from cvcli.batch.report import SCHEMA_VERSION, Report, Row
from cvcli.batch.shard import Shard
from cvcli.batch.storage import storage_of
from cvcli.errors import CvcliError, UsageError

_SHOWN = 10


def merged(paths: Sequence[Place]) -> tuple[Report, list[int]]:
    """Return the report of a whole plan from those of its shares, and the numbers of missing ones.

    `UsageError` names what is no report of a share as JSON, or of another plan, or given twice.
    """
    parts = [_read(path) for path in paths]
    _, first, whole = parts[0]
    seen: dict[int, Place] = {}
    for path, _, shard in parts:
        if (shard.count, shard.files, shard.plan) != (whole.count, whole.files, whole.plan):
            raise UsageError(
                f"{path}: is of another plan than {parts[0][0]}",
                tip="all jobs must see the same inputs: name them with --files-from",
            )
        if other := seen.get(shard.number):
            raise UsageError(f"{path}: is of share {shard}, and so is {other}")
        seen[shard.number] = path
    report = Report(Plan((), (), (), Path()), command=first["command"], version=first["version"])
    _take_all(report, [data for _, data, _ in parts])
    return report, [n for n in range(1, whole.count + 1) if n not in seen]


def listed(numbers: Sequence[int]) -> str:
    """Return some numbers as text."""
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return ", ".join(map(str, numbers[:_SHOWN])) + more


def _read(path: Place) -> tuple[Place, dict[str, Any], Shard]:
    try:
        data = json.loads(storage_of(path).read(path, stamped=False)[0])
        known = data["schema_version"] == SCHEMA_VERSION
        shard = Shard.of(data["shard"]) if known and data["started"] else None
    except CvcliError as error:
        raise UsageError(str(error)) from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{path}: is no JSON report of cvcli") from None
    if shard is None:
        raise UsageError(
            f"{path}: is no report of a share", tip="runs with --shard write them, but dry ones"
        )
    return path, data, shard


def _take_all(report: Report, parts: Sequence[dict[str, Any]]) -> None:
    """Add up the parts; the clock runs from the first start to the last end."""
    starts = [datetime.fromisoformat(data["started"]) for data in parts]
    ends = [start.timestamp() + data["wall_s"] for start, data in zip(starts, parts, strict=True)]
    report.started = min(starts)
    for data in parts:
        report.notes += [note for note in data["notes"] if note not in report.notes]
        stages = ((stage["name"], stage["busy_s"], stage["nbytes"]) for stage in data["stages"])
        report.absorb(map(_row, data["images"]), stages)
    report.device = ", ".join(_unlike(data["device"] for data in parts))
    report.close(max(ends) - report.started.timestamp())


def _unlike(names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name]


def _row(data: dict[str, Any]) -> Row:
    known = {entry.name: data[entry.name] for entry in fields(Row)}
    if data["outputs"] is not None:
        known["outputs"] = list(map(place, data["outputs"]))
    return Row(**known | {name: _path(data, name) for name in ("input", "output")})


def _path(data: dict[str, Any], name: str) -> Place | None:
    if f"{name}_b64" in data:
        return Path(os.fsdecode(base64.b64decode(data[f"{name}_b64"])))
    return None if data[name] is None else place(data[name])
