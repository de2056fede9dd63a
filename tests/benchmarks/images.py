"""JPEGs for the benchmarks, made from the photographs of ``sample_images/``.

Run as a program, so that the memory it takes is not the benchmark's own:
``images.py FOLDER COUNT [WIDTH HEIGHT]``.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

WIDTH, HEIGHT, QUALITY = 1920, 1080, 90
_PHOTOS = Path(__file__).parents[2] / "sample_images"
_COLUMNS, _ROWS = 3, 2


def make_jpegs(folder: Path, count: int, width: int = WIDTH, height: int = HEIGHT) -> None:
    """Write ``count`` different JPEGs, 4:2:0; the same ones every time. Those there are kept."""
    from concurrent.futures import ThreadPoolExecutor

    folder.mkdir(parents=True, exist_ok=True)
    photos = _photos()
    missing = [i for i in range(count) if not (folder / f"{i:04}.jpg").is_file()]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda i: _write(folder / f"{i:04}.jpg", photos, i, width, height), missing))


def _photos() -> list[Image]:
    from PIL import Image

    names = sorted(p for p in _PHOTOS.iterdir() if p.suffix in (".jpg", ".png"))
    return [Image.open(path).convert("RGB") for path in names]


def _write(path: Path, photos: list[Image], seed: int, width: int, height: int) -> None:
    image = _collage(photos, random.Random(seed), width, height)
    part = path.with_suffix(".part")
    image.save(part, "JPEG", quality=QUALITY, subsampling="4:2:0")
    part.rename(path)


def _collage(photos: list[Image], rng: random.Random, width: int, height: int) -> Image:
    """Return tiles of photographs, each a random crop at about its own scale."""
    from PIL import Image

    canvas = Image.new("RGB", (width, height))
    tile_w, tile_h = -(-width // _COLUMNS), -(-height // _ROWS)
    for i in range(_COLUMNS * _ROWS):
        photo = rng.choice(photos)
        scale = rng.uniform(0.7, 1.0) * min(photo.width / tile_w, photo.height / tile_h)
        w, h = int(tile_w * scale), int(tile_h * scale)
        x, y = rng.randint(0, photo.width - w), rng.randint(0, photo.height - h)
        tile = photo.resize((tile_w, tile_h), Image.Resampling.BICUBIC, (x, y, x + w, y + h))
        if rng.random() < 0.5:
            tile = tile.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        canvas.paste(tile, (i % _COLUMNS * tile_w, i // _COLUMNS * tile_h))
    return canvas


if __name__ == "__main__":
    make_jpegs(Path(sys.argv[1]), int(sys.argv[2]), *map(int, sys.argv[3:]))
