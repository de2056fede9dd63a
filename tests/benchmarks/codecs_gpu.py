"""Whole runs over JPEGs of 1920x1080 on a GPU, with its own codecs and with the CPU's.

    python tests/benchmarks/codecs_gpu.py [--count 600] [--rounds 3] [--json FILE]

Whole processes on a memory disk, in turn: over the files, and over four times as many. What the
two differ by, without what a process takes to start, is the steady rate that the targets are for;
the codec floor decodes and encodes the same files by the CPU's codecs and does nothing else. Prints
Markdown with the targets beside what was measured.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from measure import CVCLI, HERE, link, make_images, run, table, usable_cores, verdict

MORE = 4
FLIP, SMALL = ["flip", "--axis", "-1"], ["run", "resize 256x256^ | normalize"]
JOBS: dict[str, list[Any]] = {
    "flip, GPU codecs": [*FLIP, "--codec", "gpu"],
    "resize 256x256^ | normalize to .npy, GPU codecs": [*SMALL, "--codec", "gpu"],
    "flip, --codec cpu": [*FLIP, "--codec", "cpu"],
    "resize 256x256^ | normalize to .npy, --codec cpu": [*SMALL, "--codec", "cpu"],
}
TARGETS = {"flip, GPU codecs": 2600.0, "resize 256x256^ | normalize to .npy, GPU codecs": 4000.0}
# A serial loop of nvImageCodec and CV-CUDA, and decoding alone by the hardware engine (one H200).
PEERS = {
    "nvImageCodec and CV-CUDA, one after the other": 1301.0,
    "nvImageCodec decoding alone": 4830.0,
}
FLOOR_RATIO = 1.15


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=600, help="different files")
    parser.add_argument("--rounds", type=int, default=3, help="times each process is run")
    parser.add_argument("--work", type=Path, help="folder on a memory disk (default: /dev/shm)")
    parser.add_argument("--only", action="append", choices=[*JOBS])
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    place = args.work or (Path("/dev/shm") if Path("/dev/shm").is_dir() else None)
    with tempfile.TemporaryDirectory(dir=place, prefix="codecs-gpu-") as temp:
        found = measure_all(Path(temp), args)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def measure_all(temp: Path, args: argparse.Namespace) -> dict[str, Any]:
    photos = make_images(temp / "photos", args.count)
    few = link(photos, temp / "few", args.count)
    many = link(photos, temp / "many", args.count * MORE)
    jobs = args.only or [*JOBS]
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    reports = {}
    for number in range(-1, args.rounds):
        for name in jobs:
            one, reports[name] = _run(JOBS[name], few, temp)
            if number >= 0:
                times[name].append((one, _run(JOBS[name], many, temp)[0]))
    floor = _floor(few)
    print(f"## {args.count} JPEGs of 1920x1080 on a memory disk, {usable_cores()} cores\n")
    rows, rates = [], {}
    for name, pairs in times.items():
        whole = median(args.count / one for one, _ in pairs)
        rates[name] = median(args.count * (MORE - 1) / (more - one) for one, more in pairs)
        rows.append([name, f"{whole:.0f}", f"{rates[name]:.0f}", _target(name, rates[name], floor)])
    rows.append([f"codec floor, {usable_cores()} threads, without a start", "", f"{floor:.0f}", ""])
    rows += [[f"{name} (recorded)", "", f"{rate:.0f}", ""] for name, rate in PEERS.items()]
    print(table(["images/s", "whole process", "steady", "target"], rows))
    for name, report in reports.items():
        print(f"{name}: {_stages(report)}")
    _compare(temp, few)
    return {"count": args.count, "cores": usable_cores(), "steady": rates, "floor": floor,
            "seconds": times}  # fmt: skip


def _run(words: list[Any], source: Path, temp: Path) -> tuple[float, dict[str, Any]]:
    out, report = temp / "out", temp / "report.json"
    shutil.rmtree(out, ignore_errors=True)
    form = [] if words[0] == "flip" else ["--format", "npy"]
    cost = run([*CVCLI, *words, source, out, "--device", "cuda", "-q", "--report", report, *form])
    return cost.seconds, json.loads(report.read_text(encoding="utf-8"))


def _target(name: str, rate: float, floor: float) -> str:
    target = TARGETS.get(name, floor / FLOOR_RATIO if name == "flip, --codec cpu" else None)
    return "" if target is None else f"{target:.0f}, {verdict(rate >= target)}"


def _floor(source: Path) -> float:
    command = [sys.executable, HERE / "peers.py", "floor", source, str(usable_cores())]
    return len([*source.iterdir()]) / float(json.loads(run(command).output)["both"])


def _stages(report: dict[str, Any]) -> str:
    """Busy seconds of each stage and what the run said beside its files."""
    busy = ", ".join(f"{stage['name']} {stage['busy_s']:.2f}" for stage in report["stages"])
    notes = sorted({note for row in report["images"] for note in row["notes"]} | {*report["notes"]})
    return f"{report['wall_s']:.2f} s in the run; busy: {busy} s" + "".join(f"; {n}" for n in notes)


def _compare(temp: Path, source: Path) -> None:
    """Print how far files of the GPU's codecs are from those of the CPU's."""
    import imagecodecs
    import numpy as np

    outs = {}
    for codec in ("gpu", "cpu"):
        _run([*FLIP, "--codec", codec], source, temp)
        outs[codec] = (temp / "out").rename(temp / codec)
    errors, sizes, worst = [], [], 0
    for path in sorted(outs["cpu"].iterdir())[:: max(1, len([*source.iterdir()]) // 20)]:
        data = [(outs[codec] / path.name).read_bytes() for codec in ("gpu", "cpu")]
        one, other = (imagecodecs.jpeg8_decode(file).astype(np.int16) for file in data)
        errors.append(float(np.abs(one - other).mean()))
        worst = max(worst, int(np.abs(one - other).max()))
        sizes.append(len(data[0]) / len(data[1]))
    print(f"\nGPU against CPU codecs, file by file: {max(errors):.3f} levels in the mean at most, "
          f"{worst} at one sample; {median(sizes):.4f} of the bytes")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
