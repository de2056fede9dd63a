"""What the benchmarks share: whole processes and their cost, spreads, Markdown tables."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from images import names

HERE = Path(__file__).parent
CVCLI = [sys.executable, "-P", "-m", "cvcli"]
Command = Sequence[str | Path]


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall clock and processor time in seconds, peak resident bytes, and standard output."""

    seconds: float
    cpu_s: float
    peak_nbytes: int
    output: str


def run(*commands: Command, env: dict[str, str] | None = None, cwd: Path | None = None) -> Cost:
    """Run commands side by side to their end; exit with their words if one fails."""
    begin = time.perf_counter()
    children = [
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | (env or {}),
            cwd=cwd,
        )
        for command in commands
    ]
    outputs = []
    for child in children:
        assert child.stdout is not None
        with child.stdout:
            outputs.append(child.stdout.read())
    peak, cpu_s = 0, 0.0
    for child in children:
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        peak = max(peak, usage.ru_maxrss * 1024)
        cpu_s += usage.ru_utime + usage.ru_stime
    seconds = time.perf_counter() - begin
    for child, output in zip(children, outputs, strict=True):
        if child.returncode:
            raise SystemExit(f"{child.args!r} ended with {child.returncode}\n{output}")
    return Cost(seconds, cpu_s, peak, "".join(outputs))


def make_images(folder: Path, count: int, kind: str = "photos") -> list[Path]:
    """Make images in a process of their own and return their paths."""
    run([sys.executable, HERE / "images.py", folder, str(count), kind])
    return [folder / name for name in names(count, kind)]


def link(files: Sequence[Path], folder: Path, count: int) -> Path:
    """Fill a folder with ``count`` hard links to files in turn."""
    folder.mkdir(parents=True)
    for i in range(count):
        file = files[i % len(files)]
        (folder / f"{i:05}{file.suffix}").hardlink_to(file)
    return folder


def usable_cores() -> int:
    """Return the processors this process may use, a container's share of them respected."""
    from cvcli.devices.cpu import cpu_threads

    return cpu_threads()


def summary(values: Sequence[float]) -> dict[str, float]:
    return {"median": median(values), "min": min(values), "max": max(values)}


def by_round(values: Sequence[float], base: Sequence[float]) -> dict[str, float]:
    """Return the spread over rounds of one time over the other's in the same round.

    On a machine with other work, rounds differ more than the programs in one round do.
    """
    return summary([a / b for a, b in zip(values, base, strict=True)])


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table; all columns but the first are aligned right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def verdict(ok: bool) -> str:
    return "met" if ok else "MISSED"
