"""The main job: a folder of photographs turned by 180 degrees, against what others take.

    python tests/benchmarks/main_job.py [--count 300] [--rounds 5] [--work FOLDER] [--json FILE]

Whole processes in turn, round after round, with the files in the page cache; then start-up, memory
and the CPU operators. Prints Markdown with the targets beside what was measured.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
from measure import CVCLI, HERE, Cost, link, make_images, run, summary, table, verdict

FASTER_THAN_PEERS, FLOOR_RATIO = 1.5, 1.3
VERSION_S, FLIP_S = 0.15, 0.45
RSS_GROWTH, RSS_NBYTES = 0.10, 600e6
OPENCV_RATIO = 2.0
_PEERS = [sys.executable, str(HERE / "peers.py")]
Part = dict[str, Any]


def main() -> None:
    args = _arguments()
    if args.work is not None:
        args.work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.work, prefix="main-job-") as temp:
        photos = make_images((args.work or Path(temp)) / "photos", args.count)
        parts = {
            "job": lambda: job(Path(temp), photos, args.rounds, args.workers),
            "startup": lambda: startup(Path(temp), args.starts),
            "memory": lambda: memory(Path(temp), photos, args.many),
            "operators": lambda: operators(args.repeat),
        }
        result: Part = {"schema_version": 1, "machine": _machine(args)}
        print(f"{result['machine']}\n")
        for name in args.only or parts:
            result[name] = parts[name]()
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=300, help="images of 1920x1080")
    parser.add_argument("--rounds", type=int, default=5, help="times each whole process is run")
    parser.add_argument("--starts", type=int, default=15, help="starts whose median is taken")
    parser.add_argument("--many", type=int, default=1000, help="images of the larger memory run")
    parser.add_argument("--repeat", type=int, default=50, help="calls of each operator")
    parser.add_argument("--workers", type=int, default=measure.usable_cores(), help="of each peer")
    parser.add_argument("--work", type=Path, help="folder for the images, kept for the next time")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument(
        "--only", action="append", choices=["job", "startup", "memory", "operators"]
    )
    return parser.parse_args()


def _machine(args: argparse.Namespace) -> dict[str, Any]:
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": measure.usable_cores(),
        "load": load,
        "count": args.count,
        "rounds": args.rounds,
        "workers": args.workers,
    }


def job(temp: Path, photos: list[Path], rounds: int, workers: int) -> Part:
    """Time the whole processes in turn."""
    source, out = link(photos, temp / "in", len(photos)), temp / "out"
    runs: dict[str, Callable[[], Cost]] = {
        "cvcli": lambda: run([*CVCLI, "flip", "--axis", "-1", source, out, "--quiet"]),
        "Pillow": lambda: run([*_PEERS, "pillow", str(source), str(out), str(workers)]),
        "codec floor": lambda: run([*_PEERS, "floor", str(source), str(workers)]),
    }
    if shutil.which("gm"):
        runs["gm"] = lambda: _gm(source, out, workers)
    else:
        print("gm is not installed and left out: apt-get install graphicsmagick\n")
    times: dict[str, list[float]] = {name: [] for name in runs}
    inner: list[float] = []
    for number in range(-1, rounds):
        for name, start in runs.items():
            shutil.rmtree(out, ignore_errors=True)
            cost = start()
            _check(name, out, len(photos))
            if number >= 0:
                times[name].append(cost.seconds)
                inner += [json.loads(cost.output)["both"]] if name == "codec floor" else []
    return _report_job({**times, "codec floor, inside": inner}, len(photos), workers)


def _gm(source: Path, out: Path, workers: int) -> Cost:
    """Run GraphicsMagick on a copy of the folder, made before the clock starts.

    A process a core is its best: its own threads only get in each other's way then.
    """
    shutil.copytree(source, out)
    files = sorted(out.iterdir())
    commands = [["gm", "mogrify", "-flip", "-flop", *files[i::workers]] for i in range(workers)]
    return run(*commands, env={"OMP_NUM_THREADS": "1"})


def _check(name: str, out: Path, count: int) -> None:
    written = len(list(out.iterdir())) if out.is_dir() else 0
    if name != "codec floor" and written != count:
        raise SystemExit(f"{name}: wrote {written} of {count} images")


def _report_job(times: dict[str, list[float]], count: int, workers: int) -> Part:
    found = {name: summary(seconds) for name, seconds in times.items()}
    ratio = {
        name: measure.ratio_by_round(seconds, times["cvcli"]) for name, seconds in times.items()
    }
    titles = {
        "gm": f"`gm mogrify -flip -flop`, {workers} processes",
        "Pillow": f"Pillow script, {workers} threads",
        "codec floor": f"codec floor, {workers} threads, whole process",
        "codec floor, inside": f"codec floor, {workers} threads, without its start",
        "cvcli": "`cvcli flip --axis -1`",
    }
    rows = [
        [
            titles[name],
            f"{found[name]['median']:.2f}",
            f"{found[name]['min']:.2f}-{found[name]['max']:.2f}",
            f"{count / found[name]['median']:.0f}",
            f"{ratio[name]:.2f}",
        ]
        for name in titles
        if name in found
    ]
    print(f"## {count} JPEGs of 1920x1080, turned by 180 degrees\n")
    print(table(["what", "s, median", "s, min-max", "images/s", "time / cvcli's"], rows))
    best = min(ratio[name] for name in ("gm", "Pillow") if name in ratio)
    over = 1 / ratio["codec floor, inside"]
    _print_targets(
        [
            ("faster than the faster of gm and Pillow", best, FASTER_THAN_PEERS, ">="),
            ("time over the codec floor without its start", over, FLOOR_RATIO, "<="),
        ]
    )
    return {"seconds": found, "ratio_to_cvcli": ratio}


def _print_targets(targets: list[tuple[str, float, float, str]]) -> None:
    rows = []
    for name, value, limit, sense in targets:
        ok = value >= limit if sense == ">=" else value <= limit
        rows.append([name, f"{value:.3g}", f"{sense} {limit:g}", verdict(ok)])
    print(table(["target", "measured", "wanted", ""], rows))


def startup(temp: Path, starts: int) -> Part:
    """Time ``--version``, and one small JPEG on the CPU, in turn."""
    (small,) = make_images(temp / "small", 1, 640, 480)
    out = temp / "one.jpg"
    flip = [*CVCLI, "flip", "--axis", "-1", small, out, "--device", "cpu", "--quiet", "--overwrite"]
    times: dict[str, list[float]] = {"version": [], "flip": []}
    for number in range(-1, starts):
        for name, command in (("version", [*CVCLI, "--version"]), ("flip", flip)):
            cost = run(command)
            times[name] += [cost.seconds] if number >= 0 else []
    found = {name: summary(seconds) for name, seconds in times.items()}
    print(f"## Start-up, median of {starts} whole processes\n")
    _print_targets(
        [
            ("`cvcli --version`, s", found["version"]["median"], VERSION_S, "<="),
            ("one 640x480 JPEG flipped on the CPU, s", found["flip"]["median"], FLIP_S, "<="),
        ]
    )
    return found


def memory(temp: Path, photos: list[Path], many: int) -> Part:
    """Compare the peak memory of 100 and of many more images."""
    peaks = {}
    for count in (100, many):
        folder, out = link(photos, temp / f"in-{count}", count), temp / f"out-{count}"
        command = [*CVCLI, "flip", "--axis", "-1", folder, out, "--quiet"]
        peaks[count] = run(command).peak_nbytes
        shutil.rmtree(out)
    growth = peaks[many] / peaks[100] - 1
    print("## Peak resident memory\n")
    print(table(["images", "MB"], [[str(n), f"{peak / 1e6:.0f}"] for n, peak in peaks.items()]))
    _print_targets(
        [
            (f"growth from 100 to {many} images", growth, RSS_GROWTH, "<="),
            (f"MB with {many} images", peaks[many] / 1e6, RSS_NBYTES / 1e6, "<="),
        ]
    )
    return {str(count): peak for count, peak in peaks.items()}


def operators(repeat: int) -> Part:
    """Compare operators with OpenCV's: one thread each, call to result."""
    found: Part = json.loads(run([*_PEERS, "operators", str(repeat)]).output)
    rows = []
    for name, ms in found.items():
        ratio = ms["cvcli"] / ms["opencv"]
        met = verdict(ratio <= OPENCV_RATIO)
        figures = [f"{value:.2f}" for value in (ms["cvcli"], ms["device"], ms["opencv"], ratio)]
        rows.append([name, *figures, met])
    print("## Operators on one CPU thread, 1920x1080x3 uint8, ms\n")
    head = ["operator", "cvcli", "of it on the stream", "OpenCV", "cvcli / OpenCV"]
    print(table([*head, f"wanted <= {OPENCV_RATIO:g}"], rows))
    return found


if __name__ == "__main__":
    main()
