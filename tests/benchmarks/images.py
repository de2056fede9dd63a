"""Images for the benchmarks, made from the photographs of ``sample_images/``; the same every time.

Run as a program, so that the memory it takes is not the benchmark's own:
``images.py FOLDER COUNT KIND``, where KIND is one of `KINDS`, or WIDTHxHEIGHT for JPEGs of a size.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

QUALITY = 90
# Suffixes taken in turn, and the size, or two between which sizes are drawn.
KINDS = {
    "photos": ((".jpg",), (1920, 1080), None),
    "icons": ((".png",), (256, 256), None),
    "mixed": ((".jpg", ".png"), (320, 240), (1920, 1080)),
    "large": ((".jpg",), (3840, 2160), None),
    "tiny": ((".jpg",), (64, 64), None),
}
_PHOTOS = Path(__file__).parents[2] / "sample_images"
_COLUMNS, _ROWS = 3, 2


def names(count: int, kind: str) -> list[str]:
    """File names of the first ``count`` images of a kind."""
    suffixes = KINDS[kind][0] if kind in KINDS else (".jpg",)
    return [f"{i:05}{suffixes[i % len(suffixes)]}" for i in range(count)]


def make(folder: Path, count: int, kind: str) -> None:
    """Write ``count`` different images, JPEGs of 4:2:0; those there are kept."""
    from concurrent.futures import ThreadPoolExecutor

    folder.mkdir(parents=True, exist_ok=True)
    photos = _photos()
    missing = [
        (i, folder / name)
        for i, name in enumerate(names(count, kind))
        if not (folder / name).is_file()
    ]
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda item: _write(item[1], photos, item[0], kind), missing))


def _photos() -> list[Image]:
    from PIL import Image

    found = sorted(p for p in _PHOTOS.iterdir() if p.suffix in (".jpg", ".png"))
    photos = []
    for path in found:
        with Image.open(path) as photo:
            photos.append(photo.convert("RGB"))
    return photos


def _size(rng: random.Random, kind: str) -> tuple[int, int]:
    if kind not in KINDS:
        width, height = kind.split("x")
        return int(width), int(height)
    _, least, most = KINDS[kind]
    if most is None:
        return least
    return rng.randint(least[0], most[0]), rng.randint(least[1], most[1])


def _write(path: Path, photos: list[Image], seed: int, kind: str) -> None:
    rng = random.Random(seed)
    image = _collage(photos, rng, *_size(random.Random(seed + 1), kind))
    part = path.with_suffix(".part")
    if path.suffix == ".png":
        # What most programs write if nobody asks: zlib's level 6.
        image.save(part, "PNG")
    else:
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
        # A small image shows a part at its own scale, not everything shrunk to noise.
        scale = min(scale, 1.5)
        w, h = int(tile_w * scale), int(tile_h * scale)
        x, y = rng.randint(0, photo.width - w), rng.randint(0, photo.height - h)
        tile = photo.resize((tile_w, tile_h), Image.Resampling.BICUBIC, (x, y, x + w, y + h))
        if rng.random() < 0.5:
            tile = tile.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        canvas.paste(tile, (i % _COLUMNS * tile_w, i // _COLUMNS * tile_h))
    return canvas


if __name__ == "__main__":
    make(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
