"""A report as one page of HTML that needs nothing else: no script, no font, no address."""

from __future__ import annotations

from html import escape

from cvcli.batch.charts import PALETTE, colours, lanes_chart, overlap_chart, rate_chart
from cvcli.batch.places import Place
from cvcli.batch.report import Report, Row
from cvcli.batch.thumbs import thumbnail

_SLOWEST, _FAILED = 8, 24
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 65rem; margin: 2rem auto; padding: 1rem }
h1 { font-size: 1.4rem } h2 { font-size: 1.1rem; margin-top: 2rem }
code { font-size: .9em; overflow-wrap: anywhere }
.tiles { display: flex; flex-wrap: wrap; gap: .6rem }
.tile { border: 1px solid var(--line); border-radius: 6px; padding: .5rem .9rem; min-width: 6.5rem }
.tile b { display: block; font-size: 1.25rem }
.bad b { color: #c33 }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line) }
td.n, th.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
td:not(.n) { overflow-wrap: anywhere; vertical-align: top }
.bar { height: .7rem; border-radius: 2px; min-width: 1px }
.key { display: inline-block; width: .7rem; height: .7rem; margin-right: .35rem }
svg { width: 100%; height: auto; display: block } svg text { font-size: 11px; fill: var(--soft) }
.grid { stroke: var(--line) }
img { max-width: 144px; max-height: 144px; border: 1px solid var(--line) }
.none { color: var(--soft) }
"""


def page(report: Report) -> str:
    """Return the page of a report: totals, where the time went, the slowest and the failed."""
    colour = colours(stage.name for stage in report.stages())
    sections = [
        _head(report),
        _stages(report, colour),
        _timeline(report, colour),
        _images(report, sorted(_done(report), key=_cost, reverse=True)[:_SLOWEST]),
        _failures(report),
        _notes(report),
    ]
    return (
        "<!doctype html>\n<!-- cvcli report -->\n"
        '<html lang="en"><head><meta charset="utf-8"><title>cvcli report</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<style>{_STYLE}</style></head><body>{''.join(sections)}</body></html>\n"
    )


def _done(report: Report) -> list[Row]:
    return [row for row in report.rows if row.status == "ok"]


def _cost(row: Row) -> float:
    return sum(row.ms.values())


def _head(report: Report) -> str:
    totals = report.to_json()["totals"]
    tiles = [
        ("images", str(report.images), ""),
        ("failed", str(report.failed), "bad" if report.failed else ""),
        ("skipped", str(report.skipped), ""),
        ("not done", str(totals["planned"]), "bad" if totals["planned"] else ""),
        ("seconds", f"{report.wall_s:.2f}", ""),
        ("images/s", f"{report.images_per_s:.1f}", ""),
        ("MB read", f"{totals['bytes_in'] / 1e6:.1f}", ""),
        ("MB written", f"{totals['bytes_out'] / 1e6:.1f}", ""),
    ]
    shown = "".join(
        f'<div class="tile {kind}"><b>{value}</b>{name}</div>' for name, value, kind in tiles
    )
    where = f" on {escape(report.device)}" if report.device else ""
    when = report.started.isoformat(" ", timespec="seconds")
    return (
        f"<h1>cvcli {escape(report.version)}{where}</h1>"
        f"<p><code>{escape(report.command)}</code></p>"
        f'<p class="none">{when}</p><div class="tiles">{shown}</div>'
    )


def _stages(report: Report, colour: dict[str, str]) -> str:
    rows = "".join(
        f'<tr><td><span class="key" style="background:{colour[stage.name]}"></span>'
        f'{escape(stage.name)}</td><td class="n">{stage.busy_s:.3f}</td>'
        f'<td class="n">{stage.share:.0%}</td><td style="width:45%"><div class="bar" '
        f'style="width:{stage.share:.1%};background:{colour[stage.name]}"></div></td></tr>'
        for stage in report.stages()
    )
    return (
        "<h2>Where the time went</h2><p>Busy time of each stage, summed over threads.</p>"
        f'<table><tr><th>stage</th><th class="n">busy, s</th><th class="n">share</th><th></th></tr>'
        f"{rows}</table>"
    )


def _timeline(report: Report, colour: dict[str, str]) -> str:
    timeline = report.timeline
    if timeline is None or not len(timeline):
        return ""
    wall_s = max(report.wall_s, 1e-6)
    return (
        "<h2>Timeline</h2><p>What each thread, and each lane of a device, was busy with.</p>"
        f"{lanes_chart(timeline, wall_s, colour)}"
        "<h2>Overlap</h2><p>How many were at work at once, by stage.</p>"
        f"{overlap_chart(timeline, wall_s, colour)}"
        f"<h2>Throughput</h2>{rate_chart(timeline, wall_s)}"
    )


def _images(report: Report, rows: list[Row]) -> str:
    if not rows:
        return ""
    most = max(map(_cost, rows)) or 1.0
    lines = "".join(
        f"<tr><td>{escape(str(row.input))}<br>{_size(row)}</td><td>{_before(report, row)}</td>"
        f'<td>{_after(report, row)}</td><td class="n">{_cost(row):.1f}</td>'
        f'<td><div class="bar" style="width:{_cost(row) / most:.1%};background:{PALETTE[0]}">'
        f"</div>{_times(row)}</td></tr>"
        for row in rows
    )
    return (
        "<h2>Slowest</h2><table><tr><th>image</th><th>before</th><th>after</th>"
        f'<th class="n">ms</th><th></th></tr>{lines}</table>'
    )


def _failures(report: Report) -> str:
    rows = report.failures
    if not rows:
        return ""
    more = f"<p>and {len(rows) - _FAILED} more</p>" if len(rows) > _FAILED else ""
    lines = "".join(
        f"<tr><td>{escape(str(row.input))}</td><td>{_before(report, row)}</td>"
        f"<td>{escape(row.error or '')}{f'<br>tip: {escape(row.tip)}' if row.tip else ''}</td></tr>"
        for row in rows[:_FAILED]
    )
    return (
        "<h2>Failed</h2><table><tr><th>image</th><th>before</th><th>why</th></tr>"
        f"{lines}</table>{more}"
    )


def _notes(report: Report) -> str:
    notes = report.told()
    items = "".join(f"<li>{escape(note)}</li>" for note in notes[:_FAILED])
    return f"<h2>Notes</h2><ul>{items}</ul>" if notes else ""


def _size(row: Row) -> str:
    return (
        f'<span class="none">{row.width_in}x{row.height_in} → {row.width_out}x{row.height_out}, '
        f"{(row.bytes_in or 0) / 1e3:.0f} → {(row.bytes_out or 0) / 1e3:.0f} kB</span>"
    )


def _times(row: Row) -> str:
    times = ", ".join(f"{name} {ms:.1f}" for name, ms in row.ms.items())
    return f'<span class="none">{escape(times)}</span>'


def _before(report: Report, row: Row) -> str:
    """An input that was replaced in place can't be shown as it was."""
    replaced = row.input == row.output and row.status == "ok"
    return _picture(row.input if report.reads_files and not replaced else None)


def _after(report: Report, row: Row) -> str:
    return _picture(row.output if report.writes_files else None)


def _picture(path: Place | None) -> str:
    address = None if path is None else thumbnail(path)
    return f'<img alt="" src="{address}">' if address else '<span class="none">none</span>'
