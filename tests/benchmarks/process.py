"""One process of cvcli: how long it takes to start, and whether its memory grows with the run."""

from __future__ import annotations

import shutil
from pathlib import Path
from statistics import median

from measure import CVCLI, link, make_images, run, summary, table, verdict

VERSION_S, FLIP_S = 0.15, 0.45
GROWTH_NBYTES = 5_000_000
_FEW = 2000


def start(temp: Path, starts: int) -> dict[str, dict[str, float]]:
    """Time ``--version``, and one small JPEG on the CPU, in turn."""
    (small,) = make_images(temp / "small", 1, "640x480")
    out = temp / "one.jpg"
    flip = [*CVCLI, "flip", "--axis", "-1", small, out, "--device", "cpu", "--quiet", "--overwrite"]
    times: dict[str, list[float]] = {"version": [], "flip": []}
    for number in range(-1, starts):
        for name, command in (("version", [*CVCLI, "--version"]), ("flip", flip)):
            cost = run(command)
            times[name] += [cost.seconds] if number >= 0 else []
    limits = {"version": ("`cvcli --version`", VERSION_S), "flip": ("one 640x480 JPEG", FLIP_S)}
    rows = [
        [title, f"{median(times[name]):.3f}", f"{min(times[name]):.3f}", f"<= {limit:g}",
         verdict(median(times[name]) <= limit)]
        for name, (title, limit) in limits.items()
    ]  # fmt: skip
    print(f"## Start, {starts} whole processes\n")
    print(table(["what", "s, median", "s, least", "wanted", ""], rows))
    return {name: summary(seconds) for name, seconds in times.items()}


def memory(images: Path, temp: Path, many: int) -> dict[str, int]:
    """Compare the peak memory of a tenth of the images (at most 2,000) and of all of them."""
    few = min(_FEW, many // 10) or 1
    made = make_images(images / "tiny-memory", min(few, 500), "160x120")
    peaks = {}
    for count in (few, many):
        folder, out = link(made, temp / f"in-{count}", count), temp / f"out-{count}"
        command = [*CVCLI, "flip", "--axis", "-1", folder, out, "--quiet", "--device", "cpu"]
        peaks[count] = run(command).peak_nbytes
        written = sum(1 for _ in out.iterdir())
        if written != count:
            raise SystemExit(f"wrote {written} of {count} images")
        shutil.rmtree(out)
        shutil.rmtree(folder)
    growth = peaks[many] - peaks[few]
    print("## Peak resident memory\n")
    print(table(["images", "MB"], [[str(n), f"{peak / 1e6:.1f}"] for n, peak in peaks.items()]))
    wanted = f"wanted at most {GROWTH_NBYTES / 1e6:g} MB"
    print(f"Growth {growth / 1e6:.1f} MB, {wanted}: {verdict(growth <= GROWTH_NBYTES)}\n")
    return {str(count): peak for count, peak in peaks.items()}
