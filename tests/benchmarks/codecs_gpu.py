"""Whole runs over JPEGs of 1920x1080 on a GPU, with its own codecs and with the CPU's.

    python tests/benchmarks/codecs_gpu.py [--count 600] [--rounds 3] [--limit SECONDS] [--json FILE]

Processes in turn on a memory disk. The steady rate is that of a run once it has started, which the
targets are for; the codec floor decodes and encodes the same files by the CPU's codecs and does
nothing else. Prints each run as it is done, then Markdown with the targets.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from measure import HERE, make_images, run, table, usable_cores, verdict

FLIP, SMALL = "flip --axis -1", "resize 256x256^ | normalize"
JOBS = {
    "flip, GPU codecs": (FLIP, "gpu", ""),
    "resize 256x256^ | normalize to .npy, GPU codecs": (SMALL, "gpu", "npy"),
    "flip, --codec cpu": (FLIP, "cpu", ""),
    "resize 256x256^ | normalize to .npy, --codec cpu": (SMALL, "cpu", "npy"),
}
TARGETS = {"flip, GPU codecs": 2600.0, "resize 256x256^ | normalize to .npy, GPU codecs": 4000.0}
# A serial loop of nvImageCodec and CV-CUDA, and decoding alone by the hardware engine (one H200).
PEERS = {"nvImageCodec, CV-CUDA flip, nvImageCodec": 1301.0, "nvImageCodec, decoding alone": 4830.0}
FLOOR_RATIO = 1.15
Found = dict[str, Any]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=600, help="different files")
    parser.add_argument("--rounds", type=int, default=3, help="times each job is run and counted")
    parser.add_argument("--limit", type=float, default=1e9, help="start nothing after so long")
    parser.add_argument("--work", type=Path, help="folder on a memory disk (default: /dev/shm)")
    parser.add_argument("--only", action="append", choices=[*JOBS])
    parser.add_argument("--json", type=Path, help="write the figures here")
    args = parser.parse_args()
    memory_disk = Path("/dev/shm")
    place = args.work or (memory_disk if memory_disk.is_dir() else None)
    with tempfile.TemporaryDirectory(dir=place, prefix="codecs-gpu-") as temp:
        found = measure_all(Path(temp), args, time.perf_counter() + args.limit)
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


def measure_all(temp: Path, args: argparse.Namespace, end: float) -> Found:
    source = make_images(temp / "photos", args.count)[0].parent
    floor = _floor(source)
    print(f"codec floor, {usable_cores()} threads: {floor:.0f} images/s", flush=True)
    runs: dict[str, list[Found]] = {name: [] for name in args.only or JOBS}
    for number in range(-1, args.rounds):
        for name in runs:
            # The first run of each, which compiles kernels, counts if there is no time for more.
            if time.perf_counter() < end:
                one = _run(name, source, temp)
                runs[name] = ([*runs[name], one] if number > 0 else [one]) if one else runs[name]
    rows = []
    for name, found in runs.items():
        if not found:
            continue
        steady, whole = (median(one[key] for one in found) for key in ("steady", "whole"))
        target = TARGETS.get(name, floor / FLOOR_RATIO if name.startswith("flip") else 0.0)
        told = f"{target:.0f}, {verdict(steady >= target)}" if target else ""
        rows.append([name, f"{whole:.0f}", f"{steady:.0f}", told])
    rows.append([f"codec floor, {usable_cores()} threads", "", f"{floor:.0f}", ""])
    rows += [[f"{name} (recorded)", "", f"{rate:.0f}", ""] for name, rate in PEERS.items()]
    print(f"\n## {args.count} JPEGs of 1920x1080 on a memory disk, {usable_cores()} cores\n")
    print(table(["images/s", "whole process", "steady", "target"], rows))
    if time.perf_counter() < end:
        _compare(temp, source)
    return {"count": args.count, "cores": usable_cores(), "floor": floor, "runs": runs}


def _run(name: str, source: Path, temp: Path) -> Found | None:
    chain, codec, form = JOBS[name]
    out = temp / codec
    shutil.rmtree(out, ignore_errors=True)
    try:
        cost = run([sys.executable, HERE / "steady.py", chain, source, out, codec, form])
    except SystemExit as error:
        print(f"{name}: FAILED, {error}", flush=True)
        return None
    found: Found = json.loads(cost.output)
    found["whole"] = found["images"] / cost.seconds
    busy = ", ".join(f"{stage} {seconds:.2f}" for stage, seconds in found["busy_s"].items())
    print(f"{name}: {found['steady']:.0f}/s; process {cost.seconds:.2f} s", end="")
    print(f", run {found['wall_s']:.2f}, first image after {found['first_s']:.2f}", end="")
    print(f"; busy {busy}; {found['failed']} failed; {'; '.join(found['notes'][:3])}", flush=True)
    return found


def _floor(source: Path) -> float:
    command = [sys.executable, HERE / "peers.py", "floor", source, str(usable_cores())]
    return len([*source.iterdir()]) / float(json.loads(run(command).output)["both"])


def _compare(temp: Path, source: Path) -> None:
    """Print how far files of the GPU's codecs are from those of the CPU's."""
    import imagecodecs
    import numpy as np

    for name in ("flip, GPU codecs", "flip, --codec cpu"):
        _run(name, source, temp)
    means, sizes, worst = [], [], 0
    for path in sorted((temp / "cpu").iterdir())[::30]:
        data = [(temp / codec / path.name).read_bytes() for codec in ("gpu", "cpu")]
        one, other = (imagecodecs.jpeg8_decode(file).astype(np.int16) for file in data)
        means.append(float(np.abs(one - other).mean()))
        worst = max(worst, int(np.abs(one - other).max()))
        sizes.append(len(data[0]) / len(data[1]))
    print(f"\nGPU against CPU codecs, file by file: {max(means):.3f} levels in the mean at most, "
          f"{worst} at one sample; {median(sizes):.4f} of the bytes")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
