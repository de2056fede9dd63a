"""Charts of a run as inline SVG: what was busy when, how much overlapped, how fast it went."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from html import escape

from cvcli.batch.timeline import Span, Timeline

WIDTH, _LEFT, _ROW = 1000, 110, 18
_COLUMNS = 890
_BINS = 120
# More rectangles than this are too much for a page: then each column shows what took most of it.
_MOST_SPANS = 4000
# Told apart also by those who don't see red and green apart.
PALETTE = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#777777")


def colours(stages: Iterable[str]) -> dict[str, str]:
    """Return a colour for each stage."""
    return {stage: PALETTE[number % len(PALETTE)] for number, stage in enumerate(stages)}


def lanes_chart(timeline: Timeline, wall_s: float, colour: dict[str, str]) -> str:
    """Return a row for each thread and device lane, with what it was busy with."""
    by_lane: dict[str, list[Span]] = defaultdict(list)
    for span in timeline.spans():
        by_lane[span.lane].append(span)
    many = len(timeline) > _MOST_SPANS
    parts = []
    for row, lane in enumerate(sorted(by_lane, key=_natural)):
        y = row * _ROW
        parts.append(f'<text x="0" y="{y + 12}">{escape(lane[:18])}</text>')
        spans = sorted(by_lane[lane], key=lambda span: span.start)
        for stage, start, end in _columns(spans, wall_s) if many else _exact(spans):
            x, width = _x(start, wall_s), max(0.3, (end - start) / wall_s * _COLUMNS)
            title = f"<title>{escape(stage)}, {(end - start) * 1e3:.2f} ms</title>"
            parts.append(
                f'<rect x="{x:.2f}" y="{y + 2}" width="{width:.2f}" height="{_ROW - 4}" '
                f'fill="{colour.get(stage, PALETTE[-1])}">{title}</rect>'
            )
    return _svg(len(by_lane) * _ROW, parts, wall_s)


def _natural(lane: str) -> tuple[str, int, str]:
    """Sort worker-10 after worker-9."""
    stem, _, number = lane.rpartition("-")
    return (stem, int(number), "") if number.isdigit() else (lane, 0, "")


def _exact(spans: Sequence[Span]) -> Iterable[tuple[str, float, float]]:
    return ((span.stage, span.start, span.end) for span in spans)


def _columns(spans: Sequence[Span], wall_s: float) -> Iterable[tuple[str, float, float]]:
    """Runs of columns that one stage took most of."""
    shares = _shares(spans, wall_s, _COLUMNS)
    run: tuple[str, int, int] | None = None
    for column in range(_COLUMNS + 1):
        busy = shares.get(column, {})
        stage = max(busy, key=lambda name: busy[name]) if busy else None
        if run is not None and stage != run[0]:
            yield run[0], run[1] * wall_s / _COLUMNS, run[2] * wall_s / _COLUMNS
            run = None
        if stage is not None:
            run = (stage, run[1] if run else column, column + 1)


def _shares(spans: Iterable[Span], wall_s: float, bins: int) -> dict[int, dict[str, float]]:
    """Return the seconds each stage was busy in each of so many equal parts of the run."""
    shares: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    width = wall_s / bins
    for span in spans:
        first = min(bins - 1, int(span.start / width))
        last = min(bins - 1, int(span.end / width))
        for number in range(first, last + 1):
            begin, end = max(span.start, number * width), min(span.end, (number + 1) * width)
            shares[number][span.stage] += max(0.0, end - begin)
    return shares


def overlap_chart(timeline: Timeline, wall_s: float, colour: dict[str, str]) -> str:
    """Return how many of each stage were at work at once, stacked, over time."""
    shares, width, height = _shares(timeline.spans(), wall_s, _BINS), wall_s / _BINS, 120
    totals = [sum(shares.get(number, {}).values()) / width for number in range(_BINS)]
    top = max([1.0, *totals])
    below = [0.0] * _BINS
    parts = []
    for stage in colour:
        above = [
            low + shares.get(number, {}).get(stage, 0.0) / width for number, low in enumerate(below)
        ]
        points = _steps(above, top, height) + list(reversed(_steps(below, top, height)))
        text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        title = f"<title>{escape(stage)}</title>"
        parts.append(f'<polygon points="{text}" fill="{colour[stage]}">{title}</polygon>')
        below = above
    parts.append(f'<text x="0" y="12">{top:.1f} at once</text>')
    return _svg(height, parts, wall_s)


def rate_chart(timeline: Timeline, wall_s: float) -> str:
    """Return images done a second, over time."""
    bins, height = min(_BINS, max(1, len(timeline.finished()))), 100
    counts = [0] * bins
    for moment in timeline.finished():
        counts[min(bins - 1, int(moment / wall_s * bins))] += 1
    rates = [count * bins / wall_s for count in counts]
    top = max([*rates, 1e-9])
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in _steps(rates, top, height))
    parts = [
        f'<polyline points="{line}" fill="none" stroke="{PALETTE[0]}" stroke-width="1.5"/>',
        f'<text x="0" y="12">{top:.1f} images/s</text>',
    ]
    return _svg(height, parts, wall_s)


def _steps(values: Sequence[float], top: float, height: float) -> list[tuple[float, float]]:
    width = _COLUMNS / len(values)
    points = []
    for number, value in enumerate(values):
        y = height - value / top * (height - 4)
        points += [(_LEFT + number * width, y), (_LEFT + (number + 1) * width, y)]
    return points


def _x(moment: float, wall_s: float) -> float:
    return _LEFT + moment / wall_s * _COLUMNS


def _svg(height: float, parts: Sequence[str], wall_s: float) -> str:
    axis = [
        f'<line x1="{_x(wall_s * share, wall_s):.0f}" x2="{_x(wall_s * share, wall_s):.0f}" '
        f'y1="0" y2="{height}" class="grid"/>'
        f'<text x="{_x(wall_s * share, wall_s):.0f}" y="{height + 14}" text-anchor="{anchor}">'
        f"{wall_s * share:.2f} s</text>"
        for share, anchor in ((0, "start"), (0.25, "middle"), (0.5, "middle"), (0.75, "middle"))
    ]
    end = f'<text x="{WIDTH}" y="{height + 14}" text-anchor="end">{wall_s:.2f} s</text>'
    inside = "".join([*axis, end, *parts])
    return f'<svg viewBox="0 0 {WIDTH} {height + 18}" role="img">{inside}</svg>'
