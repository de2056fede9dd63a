"""What is timed: each job with its images, the chain that does it here, and what must come out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Size = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Job:
    """``size`` gives (width, height) of the result; ``count`` is the images of a plain run."""

    name: str
    title: str
    kind: str
    count: int
    chain: str
    size: Callable[[Size], Size]


def same(size: Size) -> Size:
    return size


def filling(size: Size) -> Size:
    """The smallest that covers 256x256."""
    width, height = size
    scale = 256 / min(size)
    return max(256, round(width * scale)), max(256, round(height * scale))


CROP, HALF = (1600, 900), (800, 450)
_FIVE = (
    "crop --width 1600 --height 900 --gravity center | resize 800x450! | flip --axis 1 | "
    "gaussian --size 5 --sigma 1 | invert"
)
JOBS = {
    job.name: job
    for job in (
        Job("flip", "turn by 180°, 1080p JPEG", "photos", 100, "flip --axis -1", same),
        Job("resize", "resize to 256, 1080p JPEG", "photos", 100, "resize 256x256^", filling),
        Job("five", "a chain of five, 1080p JPEG", "photos", 60, _FIVE, lambda _: HALF),
        Job("png", "turn by 180°, 256x256 PNG", "icons", 400, "flip --axis -1", same),
        Job("mixed", "resize to 256, mixed sizes", "mixed", 80, "resize 256x256^", filling),
        Job(
            "large", "resize to a half, 4K JPEG", "large", 20, "resize 50%",
            lambda size: (size[0] // 2, size[1] // 2),
        ),
        Job("tiny", "turn by 180°, 64x64 JPEG", "tiny", 1000, "flip --axis -1", same),
    )
}  # fmt: skip
