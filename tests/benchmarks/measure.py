"""What the benchmarks share: whole processes and their cost, medians, Markdown tables."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

HERE = Path(__file__).parent
CVCLI = [sys.executable, "-P", "-m", "cvcli"]


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall clock in seconds, peak resident memory in bytes, and standard output."""

    seconds: float
    peak_nbytes: int
    output: str


def run(*commands: Sequence[str | Path], env: dict[str, str] | None = None) -> Cost:
    """Run commands side by side to their end; exit with their words if one fails."""
    begin = time.perf_counter()
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | (env or {}))
        for command in commands
    ]
    outputs = [child.stdout.read() for child in children if child.stdout is not None]
    peak = 0
    for child in children:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        peak = max(peak, usage.ru_maxrss * 1024)
    seconds = time.perf_counter() - begin
    for child, output in zip(children, outputs, strict=True):
        if child.returncode:
            raise SystemExit(f"{child.args!r} ended with {child.returncode}\n{output}")
    return Cost(seconds, peak, "".join(outputs))


def make_images(folder: Path, count: int, *size: int) -> list[Path]:
    """Make JPEGs in a process of their own and return their paths."""
    run([sys.executable, HERE / "images.py", folder, str(count), *map(str, size)])
    return [folder / f"{i:04}.jpg" for i in range(count)]


def link(files: Sequence[Path], folder: Path, count: int) -> Path:
    """Fill a folder with ``count`` hard links to files in turn."""
    folder.mkdir(parents=True)
    for i in range(count):
        (folder / f"{i:05}.jpg").hardlink_to(files[i % len(files)])
    return folder


def usable_cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def summary(seconds: Sequence[float]) -> dict[str, float]:
    return {"median": median(seconds), "min": min(seconds), "max": max(seconds)}


def ratio_by_round(seconds: Sequence[float], base: Sequence[float]) -> float:
    """Return the median over rounds of one time over the other's in the same round.

    On a machine with other work, rounds differ more than the programs in one round do.
    """
    return median(a / b for a, b in zip(seconds, base, strict=True))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def verdict(ok: bool) -> str:
    return "met" if ok else "MISSED"
