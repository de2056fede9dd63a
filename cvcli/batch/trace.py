"""The timeline in Chrome's trace format, for chrome://tracing, Perfetto and the like."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cvcli.batch.timeline import Timeline


def chrome_trace(timeline: Timeline, names: Sequence[str] | Mapping[int, str]) -> str:
    """Return a trace as ASCII JSON: a complete event a span, in microseconds, a thread a lane.

    ``names`` are those of the images, by index.
    """
    lines = ",\n".join(map(json.dumps, _events(timeline, names)))
    return '{"schema_version": 1, "displayTimeUnit": "ms", "traceEvents": [\n' + lines + "\n]}\n"


def _events(
    timeline: Timeline, names: Sequence[str] | Mapping[int, str]
) -> Iterator[dict[str, Any]]:
    lanes: dict[str, int] = {}
    yield {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "cvcli"}}
    for span in timeline.spans():
        if span.lane not in lanes:
            lanes[span.lane] = len(lanes) + 1
            args: dict[str, Any] = {"name": span.lane}
            yield {
                "ph": "M",
                "pid": 1,
                "tid": lanes[span.lane],
                "name": "thread_name",
                "args": args,
            }
        args = {} if span.index is None else {"image": names[span.index], "index": span.index}
        yield {
            "ph": "X",
            "pid": 1,
            "tid": lanes[span.lane],
            "name": span.stage,
            "cat": "stage",
            "ts": round(span.start * 1e6, 3),
            "dur": round(span.seconds * 1e6, 3),
            "args": args,
        }
