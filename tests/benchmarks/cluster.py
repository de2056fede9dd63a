"""What a local cluster costs: N workers of one thread beside one process with a thread a core.

    python tests/benchmarks/cluster.py [--count 1000] [--rounds 5] [--workers 4] [--threads 2]

PNGs of 256x256 cut from the sample images are turned by 180 degrees, in turn, whole processes.
"All" is the whole process, "work" the time from the first output to the last: what is between
them is starting Python, importing Dask in two processes at once, and starting the workers.
"""

from __future__ import annotations

import argparse
import random
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

_PHOTOS = Path(__file__).parents[2] / "sample_images"
_SIDE = 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cluster-") as folder:
        here = Path(folder)
        _make(here / "in", args.count)
        runs = {
            f"one process, {args.threads} threads": ["--threads", str(args.threads)],
            f"`--cluster local:{args.workers}`": ["--cluster", f"local:{args.workers}"],
        }
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
        for number in range(-1, args.rounds):
            for name, words in runs.items():
                found = _time(here, words, args.count)
                times[name] += [found] if number >= 0 else []
    _print(times, args.count)


def _make(folder: Path, count: int) -> None:
    from PIL import Image

    folder.mkdir()
    rng = random.Random(1)
    names = sorted(path for path in _PHOTOS.iterdir() if path.suffix in (".jpg", ".png"))
    photos = [Image.open(path).convert("RGB") for path in names]
    for index in range(count):
        photo = photos[index % len(photos)]
        side = min(2 * _SIDE, *photo.size)
        x, y = rng.randint(0, photo.width - side), rng.randint(0, photo.height - side)
        small = photo.resize((_SIDE, _SIDE), box=(x, y, x + side, y + side))
        small.save(folder / f"{index:05}.png")


def _time(here: Path, words: list[str], count: int) -> tuple[float, float]:
    """Return the seconds of a whole run, and those from its first output to its last."""
    out = here / "out"
    shutil.rmtree(out, ignore_errors=True)
    flip = ["flip", "--axis", "-1", str(here / "in"), str(out), "--device", "cpu", "--quiet"]
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-P", "-m", "cvcli", *flip, *words], check=True)
    seconds = time.perf_counter() - begin
    written = [path.stat().st_mtime for path in out.iterdir()]
    if len(written) != count:
        raise SystemExit(f"{' '.join(words)}: wrote {len(written)} of {count} images")
    return seconds, max(written) - min(written)


def _print(times: dict[str, list[tuple[float, float]]], count: int) -> None:
    base = next(iter(times.values()))
    print(f"{count} PNGs of {_SIDE}x{_SIDE}, medians of {len(base)} rounds\n")
    print("| what | all, s | ratio | work, s | ratio |\n| --- | ---: | ---: | ---: | ---: |")
    for name, found in times.items():
        cells = []
        for part in (0, 1):
            # By round: other work on the machine changes more between rounds than within one.
            ratios = [own[part] / one[part] for own, one in zip(found, base, strict=True)]
            cells += [f"{median(own[part] for own in found):.2f}", f"{median(ratios):.2f}"]
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
