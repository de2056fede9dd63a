"""The measured record of a run: what became of every image, and how long each stage was busy.

JSON, schema version 1. Every name ends in its unit: ``_s`` seconds, ``ms`` milliseconds, bytes in
bytes; MB and GB are 10^6 and 10^9 bytes. The text is ASCII, escaped. ::

    schema_version, command, version, device   the run; command is one string
    shard       what part of a plan this is: number, count, files (of the whole plan), plan (short
                for its inputs); null for the whole
    started     ISO 8601 in UTC, null in a dry run
    wall_s      from the start to the end of the run
    totals      images (ok), failed, skipped, planned, outputs, bytes_in, bytes_out (of ok images),
                images_per_s, mb_per_s (file bytes read of ok images, over the wall clock)
    notes       what is worth knowing of the whole run
    stages      name, busy_s (summed over threads), share (of all busy time), nbytes,
                gb_per_s (null where no bytes were counted), in pipeline order
    images      a row for each input, in the order of the plan:
                index, input, output, outputs (list; null but where each picture of a file gets
                its own, of which output is the first), status, error, tip, width_in, height_in,
                width_out, height_out, bytes_in, bytes_out, device, host (null in a run on this
                machine alone), notes (list), ms (stage -> time);
                input_b64 and output_b64 besides, where the path is not UTF-8

``status`` is ok, failed, skipped (the output existed) or planned (not reached: a dry run, or a run
that was interrupted). What isn't known is null.

CSV is a row an image with the same columns, lists joined by "; ", a column ``ms: STAGE`` for each
stage, and schema_version in front. It is UTF-8; a byte of a path that isn't is
written as "\\udcXX".
"""

import time
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from cvcli.batch.places import Place
from cvcli.batch.plan import Job, Plan, Problem
from cvcli.batch.rows import FOUND, Rows, Status, failed_row, row_of
from cvcli.batch.rows import Row as Row  # it is a report's for all who read one
from cvcli.batch.shard import Shard
from cvcli.batch.storage import storage_of
from cvcli.batch.timeline import Timeline

SCHEMA_VERSION = 1
HOST_STAGES = ("read", "decode", "encode", "write")
_BEFORE = ("read", "decode", "upload")
_AFTER = ("download", "encode", "write")


@dataclass(frozen=True, slots=True)
class StageRow:
    """How busy one stage was, over all threads and images."""

    name: str
    busy_s: float
    share: float
    nbytes: int
    gb_per_s: float | None


# What is no warning: pixels where they were run are the same, and the others were asked for.
SHRUNK = "decoded at 1/"
_PLAIN = ("run on the CPU", "decoded on the CPU", "encoded on the CPU", SHRUNK)


def warnings_of(notes: Iterable[str]) -> list[str]:
    """Return the notes that tell of a loss, or of something odd."""
    return [note for note in notes if not note.startswith(_PLAIN)]


class Report:
    """Filled by many threads at once; the clock runs from its making to `close`."""

    def __init__(
        self,
        plan: Plan,
        *,
        command: str = "",
        version: str = "",
        device: str = "",
        device_stages: Iterable[str] = (),
        timeline: bool = False,
        timings: bool = True,
        shard: Shard | None = None,
        host: str | None = None,
    ) -> None:
        """``device_stages`` are launch labels in chain order; others follow as they are met.

        With ``timeline`` it is kept too when each stage was busy, at some 30 bytes a stage and
        image. Without ``timings`` rows say nothing of time, which saves 250 bytes an image.
        """
        self.command, self.version, self.device = command, version, device
        self.shard, self.host = shard, host
        self.rows = Rows(plan)
        self._lock = self.rows.lock
        self.notes: list[str] = []
        self.reads_files = self.writes_files = True
        """Whether inputs and outputs are files that can be looked at afterwards."""
        self.started = datetime.now(UTC)
        self._clock = time.perf_counter()
        self.timeline = Timeline(self._clock) if timeline else None
        self._timings = timings
        self._wall_s: float | None = None
        self._labels = list(device_stages)
        self._busy: dict[str, float] = dict.fromkeys((*HOST_STAGES, *self._labels), 0.0)
        self._nbytes: Counter[str] = Counter()
        self._status: Counter[str] = Counter(
            planned=len(plan.jobs), skipped=len(plan.skipped), failed=len(plan.problems)
        )
        self._failed = array("q", (problem.index for problem in plan.problems))
        self._noted = array("q")
        self._bytes_in = self._bytes_out = self._outputs = 0

    def add_busy(
        self,
        stage: str,
        seconds: float,
        nbytes: int = 0,
        *,
        index: int | None = None,
        end: float | None = None,
        lane: str | None = None,
    ) -> None:
        """Time a stage was busy and bytes it moved; ``index`` adds the time to that image too.

        ``end`` is when it ended, by `time.perf_counter`, if not just now; ``lane`` is what was
        busy, if not the calling thread.
        """
        if self.timeline is not None:
            self.timeline.add(stage, seconds, index, end, lane)
        with self._lock:
            if stage not in self._busy:
                self._busy[stage] = 0.0
                self._labels.append(stage)
            self._busy[stage] += seconds
            self._nbytes[stage] += nbytes
            if index is not None and self._timings:
                ms = self.rows.row(index).ms
                ms[stage] = ms.get(stage, 0.0) + seconds * 1e3

    def begin(self, job: Job) -> None:
        """An image is being read."""
        self.rows.begin(job)

    def opened(self, index: int, *, width: int, height: int, bytes_in: int) -> None:
        """An image's header was read: its size in pixels and its file's bytes."""
        with self._lock:
            row = self.rows.row(index)
            row.width_in, row.height_in, row.bytes_in = width, height, bytes_in

    def add(self, found: Job | Problem, *, skipped: bool = False) -> None:
        """One more input, known only now; its index is the next one."""
        row = failed_row(found) if isinstance(found, Problem) else row_of(found, skipped)
        with self._lock:
            if row.index != len(self.rows):
                raise ValueError(f"the next image is {len(self.rows)}, got {row.index}")
            self._append(row)

    def _append(self, row: Row) -> None:
        self.rows.append(row)
        self._count(row)

    def row(self, index: int) -> Row:
        """The image that has this index in the plan."""
        return self.rows.row(index)

    def note(self, index: int, text: str) -> None:
        """Something worth knowing about an image that did not stop it, once for each text."""
        with self._lock:
            notes = self.rows.row(index).notes
            if not notes:
                self._noted.append(index)
            if text not in notes:
                notes.append(text)

    def finish(
        self,
        index: int,
        *,
        width: int,
        height: int,
        bytes_out: int,
        device: str | None = None,
        outputs: int | None = None,
    ) -> None:
        """An output is in place; ``device`` where it ran, if not on the run's own.

        ``outputs`` is how many of several were written, if not all.
        """
        with self._lock:
            row = self.rows.row(index)
            row.outputs = row.outputs and row.outputs[:outputs]
            row.width_out, row.height_out, row.bytes_out = width, height, bytes_out
            row.device = device or self.device
            if self.timeline is not None:
                self.timeline.finish()
            self._set_status(row, "ok")
            self._bytes_in += row.bytes_in or 0
            self._bytes_out += bytes_out
            self._outputs += len(row.outputs or (row.output,))

    def fail(self, index: int, error: str, tip: str | None = None) -> None:
        """An image failed; ``error`` is one sentence that names its file."""
        with self._lock:
            row = self.rows.row(index)
            row.error, row.tip = error, tip
            self._set_status(row, "failed")

    def _set_status(self, row: Row, status: Status) -> None:
        if row.status != "planned":
            raise ValueError(f"image {row.index} was already {row.status}")
        self._status[row.status] -= 1
        row.status, row.host = status, row.host or self.host
        self._count(row)
        self.rows.settle(row)

    def _count(self, row: Row) -> None:
        self._status[row.status] += 1
        if row.status == "failed":
            self._failed.append(row.index)

    def absorb(self, rows: Iterable[Row], stages: Iterable[tuple[str, float, int]]) -> None:
        """What another report has of images that are still planned here, or not known here.

        ``stages`` are names, busy seconds and bytes.
        """
        with self._lock:
            for row in rows:
                self._absorb(row)
            for name, busy_s, nbytes in stages:
                if name not in self._busy:
                    self._labels.append(name)
                self._busy[name] = self._busy.get(name, 0.0) + busy_s
                self._nbytes[name] += nbytes

    def _absorb(self, row: Row) -> None:
        if not self.rows.knows(row.index):
            self._append(row)
        elif self.rows.row(row.index).status != "planned" or row.status == "planned":
            return
        else:
            known = self.rows.row(row.index)
            for name in FOUND:
                setattr(known, name, getattr(row, name))
            if known.outputs and row.outputs:
                del known.outputs[len(row.outputs) :]
            self._status["planned"] -= 1
            self._count(known)
            self.rows.settle(known)
        if row.notes:
            self._noted.append(row.index)
        if row.status == "ok":
            self._bytes_in += row.bytes_in or 0
            self._bytes_out += row.bytes_out or 0
            self._outputs += len(row.outputs or (row.output,))

    def close(self, wall_s: float | None = None) -> None:
        """Stop the clock, once; at ``wall_s`` seconds, if another clock has counted them."""
        with self._lock:
            if self._wall_s is None:
                own = time.perf_counter() - self._clock
                self._wall_s = own if wall_s is None else wall_s

    @property
    def wall_s(self) -> float:
        """Seconds since the report was made, up to `close`."""
        return time.perf_counter() - self._clock if self._wall_s is None else self._wall_s

    @property
    def images(self) -> int:
        """Images done."""
        return self._status["ok"]

    @property
    def failed(self) -> int:
        """Images that failed, problems of the plan among them."""
        return self._status["failed"]

    @property
    def skipped(self) -> int:
        """Images left alone as their output existed."""
        return self._status["skipped"]

    @property
    def left(self) -> int:
        """Images that were not reached."""
        return self._status["planned"]

    @property
    def failures(self) -> tuple[Row, ...]:
        """The failed images, in the order of the plan."""
        return tuple(self.rows.pick(self._failed))

    @property
    def images_per_s(self) -> float:
        """Images done, over the wall clock."""
        return _per(self.images, self.wall_s)

    @property
    def mb_per_s(self) -> float:
        """Megabytes (10^6) a second of input: file bytes read of the images done."""
        return _per(self._bytes_in / 1e6, self.wall_s)

    def told(self) -> list[str]:
        """Notes of the run and of its images, those on images decoded small as one."""
        noted = (
            (row.input, note) for row in self.rows.pick(set(self._noted)) for note in row.notes
        )
        told, small = list[str](), 0
        for path, note in noted:
            if note.startswith(SHRUNK):
                small += 1
            else:
                told.append(f"{path}: {note}")
        if small:
            images = "an image was" if small == 1 else f"{small} images were"
            told.append(f"{images} decoded small, as the results are; --exact takes every pixel")
        return [*self.notes, *told]

    def stages(self) -> list[StageRow]:
        """Every stage in pipeline order; shares are of the sum of busy time and add up to 1."""
        with self._lock:
            busy, nbytes = dict(self._busy), dict(self._nbytes)
            names = _pipeline_order(self._labels)
        total = sum(busy.values())
        return [
            StageRow(name, busy[name], _per(busy[name], total), moved, _rate(moved, busy[name]))
            for name in names
            for moved in (nbytes.get(name, 0),)
        ]

    def to_json(self) -> dict[str, Any]:
        """The whole report as the schema has it."""
        wall_s = self.wall_s
        return {
            "schema_version": SCHEMA_VERSION,
            "command": self.command,
            "version": self.version,
            "device": self.device,
            "shard": None if self.shard is None else asdict(self.shard),
            "started": self.started.isoformat(timespec="milliseconds"),
            "wall_s": wall_s,
            "totals": {
                "images": self.images,
                "failed": self.failed,
                "skipped": self.skipped,
                "planned": self.left,
                "outputs": self._outputs,
                "bytes_in": self._bytes_in,
                "bytes_out": self._bytes_out,
                "images_per_s": _per(self.images, wall_s),
                "mb_per_s": _per(self._bytes_in / 1e6, wall_s),
            },
            "notes": list(self.notes),
            "stages": [asdict(stage) for stage in self.stages()],
            "images": [row.to_json() for row in self.rows],
        }

    def write(self, path: Place) -> None:
        """Write the report as JSON, CSV or HTML, by suffix; one already there is replaced."""
        from cvcli.batch.report_file import rendered

        text = rendered(self, path.suffix.lower())
        storage_of(path).write(path, text.encode(errors="backslashreplace"), overwrite=True)

    def write_trace(self, path: Place) -> None:
        """Write the timeline as a Chrome trace; one already there is replaced."""
        from cvcli.batch.trace import chrome_trace

        if self.timeline is None:
            raise ValueError("no timeline was kept")
        text = chrome_trace(self.timeline, {row.index: str(row.input) for row in self.rows})
        storage_of(path).write(path, text.encode("ascii"), overwrite=True)


def dry_run(plan: Plan, **run: Any) -> dict[str, Any]:
    """The plan in the report's schema: what would be done has status "planned".

    ``run`` is what `Report` takes besides.
    """
    report = Report(plan, **run).to_json()
    return report | {"started": None, "wall_s": 0.0}


def _pipeline_order(labels: Sequence[str]) -> list[str]:
    """Uploads and downloads are listed only where there were any."""
    known = {*HOST_STAGES, *labels}
    middle = [label for label in labels if label not in (*_BEFORE, *_AFTER)]
    return [name for name in (*_BEFORE, *middle, *_AFTER) if name in known]


def _per(amount: float, whole: float) -> float:
    return amount / whole if whole > 0 else 0.0


def _rate(nbytes: int, seconds: float) -> float | None:
    return nbytes / seconds / 1e9 if nbytes and seconds > 0 else None
