"""A report as a file: what it looks like as JSON and CSV, and where it may be written."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cvcli.batch.files import Identity, name_trouble
from cvcli.batch.places import Place
from cvcli.batch.plan import Plan
from cvcli.batch.report import SCHEMA_VERSION, Report, Row
from cvcli.batch.storage import storage_of
from cvcli.errors import UsageError

_SUFFIXES = (".json", ".csv", ".html")
_STARTS = (b'"schema_version"', b"schema_version,", b"<!doctype html>\n<!-- cvcli report")


def rendered(report: Report, suffix: str) -> str:
    """Return a report as the text of a file with this suffix."""
    if suffix == ".html":
        from cvcli.batch.page import page

        return page(report)
    return (_as_csv if suffix == ".csv" else dump_json)(report.to_json())


def check_report_path(
    path: Place,
    plan: Plan | None = None,
    others: Iterable[Place] = (),
    suffixes: Iterable[str] = _SUFFIXES,
) -> None:
    """Refuse a report that can't be written, or that would overwrite a file of the run."""
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"{path}: must be named {' or '.join(suffixes)}")
    storage = storage_of(path)
    trouble = name_trouble(os.fspath(path)) if isinstance(path, Path) else None
    if trouble := trouble or storage.folder_trouble(os.fspath(path.parent)):
        raise UsageError(f"{path}: {trouble}")
    if storage.is_folder(path):
        raise UsageError(f"{path}: a report can't be written over a folder")
    if storage.exists(path) and not _is_report(path):
        raise UsageError(f"{path}: exists and is no report of cvcli", tip="give it another name")
    clash = None if plan is None else _overwritten(path, plan, others)
    if clash is not None:
        raise UsageError(f"{path}: the report would overwrite {clash}", tip="give it another name")


def _is_report(path: Place) -> bool:
    """Whether a file is an earlier report, which a new one may replace."""
    try:
        start = storage_of(path).head(path, 64)
    except OSError:
        return False
    return start.lstrip(b"{ \n").startswith(_STARTS)


def _overwritten(path: Place, plan: Plan, others: Iterable[Place]) -> Place | None:
    target, identity = os.path.realpath(path), _identity_of(path)
    jobs = (*plan.jobs, *plan.skipped)
    if os.path.realpath(plan.output_root) == target:
        return plan.output_root
    for read in (*(job.input for job in jobs), *others):
        if identity is not None and _identity_of(read) == identity:
            return read
    for output in (output for job in jobs for output in job.outputs):
        same_name = output.name.casefold() == path.name.casefold()
        if same_name and os.path.realpath(output) == target:
            return output
    return None


def _identity_of(path: Place) -> Identity | None:
    return storage_of(path).identity(os.fspath(path))


def dump_json(report: dict[str, Any]) -> str:
    """A report, or a dry run, as ASCII text with an image on each line."""
    lines = [f" {json.dumps(key)}: {_dump_value(value)}" for key, value in report.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _dump_value(value: object) -> str:
    if not isinstance(value, list) or not value:
        return json.dumps(value)
    return "[\n  " + ",\n  ".join(map(json.dumps, value)) + "\n ]"


def _as_csv(report: dict[str, Any]) -> str:
    stages = [stage["name"] for stage in report["stages"]]
    skeleton = Row(0, Path(), None).to_json()
    columns = ["schema_version", *skeleton, "input_b64", "output_b64"]
    columns.remove("ms")
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns + [f"ms: {stage}" for stage in stages])
    for row in report["images"]:
        joined = {name: "; ".join(row[name] or ()) for name in ("notes", "outputs")}
        row |= {"schema_version": SCHEMA_VERSION} | joined
        cells = [row.get(column) for column in columns]
        writer.writerow(cells + [row["ms"].get(stage) for stage in stages])
    return text.getvalue()
