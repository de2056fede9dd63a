"""Whether a tool did its job: the number of files, their sizes, and roughly their pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs import CROP, HALF, Job

# Mean difference of samples. Filters and JPEG's losses stay well below, another picture well above.
_TOLERANCE = 8.0
_LOOKED_AT = 3


def trouble(job: Job, source: Path, out: Path) -> str | None:
    """Why the results of a run can't count, or None."""
    from PIL import Image

    files, made = sorted(source.iterdir()), sorted(out.iterdir())
    if [path.name for path in files] != [path.name for path in made]:
        return f"wrote {len(made)} of {len(files)} images"
    for number, (path, result) in enumerate(zip(files, made, strict=True)):
        with Image.open(path) as before, Image.open(result) as after:
            if after.size != job.size(before.size):
                return f"{result.name} is {after.size}, not {job.size(before.size)}"
            if number % max(1, len(files) // _LOOKED_AT):
                continue
            off = _difference(_wanted(job, before.convert("RGB")), after.convert("RGB"))
            if off > _TOLERANCE:
                return f"{result.name} is another picture: {off:.1f} levels off"
    return None


def _wanted(job: Job, image: Any) -> Any:
    """What the job makes of an image, in Pillow's words."""
    from PIL import Image, ImageFilter, ImageOps

    if job.name in ("flip", "png", "tiny"):
        return image.transpose(Image.Transpose.ROTATE_180)
    if job.name != "five":
        return image.resize(job.size(image.size), Image.Resampling.BILINEAR)
    x, y = (image.width - CROP[0]) // 2, (image.height - CROP[1]) // 2
    part = image.crop((x, y, x + CROP[0], y + CROP[1])).resize(HALF, Image.Resampling.BILINEAR)
    part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT).filter(ImageFilter.GaussianBlur(1))
    return ImageOps.invert(part)


def _difference(one: Any, other: Any) -> float:
    import numpy as np

    return float(np.abs(np.asarray(one, np.int16) - np.asarray(other, np.int16)).mean())
