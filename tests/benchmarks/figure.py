"""The plot: how many times as long as cvcli each tool takes, a panel a job."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

OURS, THEIRS, FLOOR = "#1b7837", "#9e9ac8", "#cccccc"
_COLUMNS = 4


def draw(result: dict[str, Any], path: Path) -> None:
    """Write a PNG from what ``python tests/benchmarks --json`` keeps; needs matplotlib."""
    import matplotlib
    from PIL import Image

    matplotlib.use("Agg")
    from matplotlib import pyplot

    jobs = {name: job for name, job in result["jobs"].items() if job["tools"]}
    columns = min(_COLUMNS, len(jobs))
    rows = -(-len(jobs) // columns)
    figure, axes = pyplot.subplots(
        rows, columns, figsize=(4 * columns, 2.9 * rows), squeeze=False, layout="constrained"
    )
    for axis in axes.flat[len(jobs) :]:
        axis.set_axis_off()
    for axis, job in zip(axes.flat, jobs.values(), strict=False):
        _panel(axis, job)
    machine = result["machine"]
    figure.suptitle(
        f"Time of the whole run over cvcli's (less is better), {machine['cores']} cores",
        fontsize=11,
    )
    picture = io.BytesIO()
    figure.savefig(picture, dpi=80)
    pyplot.close(figure)
    # A palette makes a third of it.
    Image.open(picture).convert("RGB").quantize(32).save(path, optimize=True)


def _panel(axis: Any, job: dict[str, Any]) -> None:
    tools = sorted(job["tools"].items(), key=lambda item: -item[1]["ratio"]["median"])
    for place, (name, tool) in enumerate(tools):
        spread = tool["ratio"]
        middle = spread["median"]
        colour = OURS if name.startswith("cvcli") else FLOOR if tool["reference"] else THEIRS
        error = [[middle - spread["min"]], [spread["max"] - middle]]
        axis.barh(place, middle, color=colour, xerr=error, error_kw={"lw": 0.8, "capsize": 2})
        axis.annotate(
            f" {middle:.2f}", (spread["max"], place), va="center", fontsize=8, xytext=(2, 0),
            textcoords="offset points",
        )  # fmt: skip
    axis.set_yticks(range(len(tools)), [name for name, _ in tools], fontsize=8)
    axis.set_title(f"{job['title']} ({job['count']})", fontsize=9)
    axis.axvline(1, color="black", lw=0.6)
    axis.set_xlim(0, max(tool["ratio"]["max"] for _, tool in tools) * 1.2)
    axis.tick_params(axis="x", labelsize=8)
    axis.spines[["top", "right"]].set_visible(False)
