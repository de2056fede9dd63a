"""Whole runs of cvcli and of every other tool that is found here, on the same files in turn.

    python tests/benchmarks [--scale 1] [--rounds 3] [--job NAME]... [--tool NAME]...
                            [--work FOLDER] [--json FILE] [--plot FILE.png]

Images are made from ``sample_images/``. Tools take turns, round after round, so that what else the
machine does hits all alike, and ratios are taken within a round; each tool's results are checked.
Prints Markdown; ``--plot`` needs matplotlib (the extra ``bench``). ``--only start`` times the start
of a process, ``--only memory`` compares the peak memory of few and of many images.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

import check
import process
import tools
from jobs import JOBS, Job
from measure import by_round, link, make_images, summary, table, usable_cores
from tools import Tool

Part = dict[str, Any]


def main() -> None:
    args = _arguments()
    if args.work is not None:
        args.work.mkdir(parents=True, exist_ok=True)
    result: Part = {"schema_version": 1, "machine": _machine(args), "jobs": {}}
    print(f"{result['machine']}\n")
    with tempfile.TemporaryDirectory(dir=args.work, prefix="run-") as temp:
        images = args.work or Path(temp)
        if "jobs" in args.only:
            found = list(tools.found(args.gpu))
            chosen = [tool for tool in found if not args.tool or tool.name in ("cvcli", *args.tool)]
            for name in args.job or JOBS:
                result["jobs"][name] = _job(JOBS[name], chosen, images, Path(temp), args)
                _keep(result, args)
        if "start" in args.only:
            result["start"] = process.start(Path(temp), args.starts)
        if "memory" in args.only:
            result["memory"] = process.memory(images, Path(temp), args.many)
    _keep(result, args)


def _keep(result: Part, args: argparse.Namespace) -> None:
    """Write what there is so far: a long run may be ended early."""
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if args.plot and result["jobs"]:
        from figure import draw

        args.plot.parent.mkdir(parents=True, exist_ok=True)
        draw(result, args.plot)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    add = parser.add_argument
    add("--scale", type=float, default=1.0, help="times the images of a plain run")
    add("--rounds", type=int, default=3, help="rounds that count, after one that warms up")
    add("--job", action="append", choices=[*JOBS], help="only this job; more may be given")
    add(
        "--tool", action="append", help="only this tool, such as cvcli or Pillow; more may be given"
    )
    add("--workers", type=int, default=usable_cores(), help="threads or processes of each tool")
    add("--work", type=Path, help="folder of the images, kept for the next time")
    add("--json", type=Path, help="write the figures here")
    add("--plot", type=Path, help="write the plot here, a PNG")
    add("--only", action="append", choices=["jobs", "start", "memory"])
    add("--starts", type=int, default=15, help="starts of a process")
    add("--many", type=int, default=2000, help="images of the larger run for memory")
    add("--gpu", action=argparse.BooleanOptionalAction, default=_has_gpu())
    args = parser.parse_args()
    args.only = args.only or ["jobs"]
    return args


def _has_gpu() -> bool:
    from cvcli.devices import gpu_count

    return gpu_count() > 0


def _machine(args: argparse.Namespace) -> Part:
    from cvcli.cli.doctor import machine

    return {
        "processor": machine(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": args.workers,
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "rounds": args.rounds,
        "versions": tools.versions(),
    }


def _job(job: Job, chosen: list[Tool], images: Path, temp: Path, args: argparse.Namespace) -> Part:
    count = max(2, round(job.count * args.scale))
    made = make_images(images / job.kind, count, job.kind)
    source, out = link(made, temp / f"{job.name}-in", count), temp / "out"
    costs: dict[str, list[Any]] = {}
    nbytes: dict[str, int] = {}
    left = list(chosen)
    for number in range(args.rounds + 1):
        # Each round starts with another tool, so none always follows the same one.
        for tool in left[number % len(left) :] + left[: number % len(left)]:
            tools.clean(out)
            cost = tool.start(job, source, out, args.workers)
            if cost is None:
                left = [other for other in left if other is not tool]
                continue
            if number == 0:
                _refuse_wrong(tool, job, source, out)
                nbytes[tool.name] = sum(path.stat().st_size for path in _files(out))
            else:
                costs.setdefault(tool.name, []).append(cost)
    tools.clean(out)
    return _report(job, count, [tool for tool in left if tool.name in costs], costs, nbytes)


def _files(out: Path) -> list[Path]:
    return list(out.iterdir()) if out.is_dir() else []


def _refuse_wrong(tool: Tool, job: Job, source: Path, out: Path) -> None:
    if not tool.reference and (why := check.trouble(job, source, out)):
        raise SystemExit(f"{tool.name}, {job.name}: {why}")


def _report(
    job: Job, count: int, left: list[Tool], costs: dict[str, list[Any]], nbytes: dict[str, int]
) -> Part:
    base = costs[left[0].name]
    found: Part = {}
    rows = []
    for tool in left:
        seconds, cpu = ([getattr(c, key) for c in costs[tool.name]] for key in ("seconds", "cpu_s"))
        ratio = by_round(seconds, [cost.seconds for cost in base])
        cpu_ratio = by_round(cpu, [cost.cpu_s for cost in base])
        took, size = summary(seconds), nbytes[tool.name] / max(1, nbytes[left[0].name])
        found[tool.name] = {
            "seconds": took, "cpu_s": summary(cpu), "ratio": ratio, "cpu_ratio": cpu_ratio,
            "nbytes": nbytes[tool.name], "how": tool.how, "reference": tool.reference,
        }  # fmt: skip
        rows.append(
            [
                f"{tool.name}: {tool.how}",
                f"{took['median']:.2f}",
                f"{count / took['median']:.0f}",
                f"{ratio['median']:.2f}",
                f"{ratio['min']:.2f}-{ratio['max']:.2f}",
                f"{cpu_ratio['median']:.2f}",
                f"{size:.2f}" if size else "",
            ]
        )
    print(f"## {job.name}: {count} images, {job.title}\n")
    head = ["tool", "s", "images/s", f"over {left[0].name}", "min-max", "processor time", "bytes"]
    print(table(head, rows))
    sys.stdout.flush()
    return {"title": job.title, "count": count, "tools": found}


if __name__ == "__main__":
    main()
