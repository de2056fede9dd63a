"""What users write with other libraries, each a program: ``peers.py LIBRARY JOB IN OUT THREADS``.

Each imports only what it needs, so that its whole process is what a user's script would be.
``peers.py floor IN THREADS`` decodes and encodes and does nothing else.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# Not there where PYTHONSAFEPATH is set.
sys.path.insert(0, str(Path(__file__).parent))

from jobs import CROP, HALF, JOBS, Size

QUALITY = 90
Work = Callable[[Path, Path], None]


def main(library: str, job: str, source: str, target: str, threads: str) -> None:
    """Run a job over a folder, by a pool of threads or, for batches, in one."""
    out = Path(target)
    out.mkdir(parents=True, exist_ok=True)
    files = sorted(Path(source).iterdir())
    if library in BATCHED:
        BATCHED[library](job, files, out)
        return
    work = SCRIPTS[library](job)
    with ThreadPoolExecutor(int(threads)) as pool:
        list(pool.map(lambda path: work(path, out / path.name), files))


def pillow(job: str) -> Work:
    from PIL import Image, ImageFilter, ImageOps

    def resized(image: Any, size: Size) -> Any:
        return image.resize(size, Image.Resampling.BILINEAR)

    def five(image: Any) -> Any:
        x, y = (image.width - CROP[0]) // 2, (image.height - CROP[1]) // 2
        image = resized(image.crop((x, y, x + CROP[0], y + CROP[1])), HALF)
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        return ImageOps.invert(image.filter(ImageFilter.GaussianBlur(1)))

    def work(path: Path, out: Path) -> None:
        with Image.open(path) as image:
            if job == "five":
                image = five(image)
            elif job in ("flip", "png", "tiny"):
                image = image.transpose(Image.Transpose.ROTATE_180)
            else:
                image = resized(image, JOBS[job].size(image.size))
        image.save(out, quality=QUALITY)

    return work


def opencv(job: str) -> Work:
    import cv2

    # One thread a file is its best: its own threads only get in each other's way then.
    cv2.setNumThreads(1)
    area = cv2.INTER_AREA

    def five(image: Any) -> Any:
        x, y = (image.shape[1] - CROP[0]) // 2, (image.shape[0] - CROP[1]) // 2
        image = cv2.resize(image[y : y + CROP[1], x : x + CROP[0]], HALF, interpolation=area)
        return cv2.bitwise_not(cv2.GaussianBlur(cv2.flip(image, 1), (5, 5), 1))

    def work(path: Path, out: Path) -> None:
        image: Any = cv2.imread(str(path))
        if job == "five":
            image = five(image)
        elif job in ("flip", "png", "tiny"):
            image = cv2.flip(image, -1)
        else:
            size = JOBS[job].size((image.shape[1], image.shape[0]))
            image = cv2.resize(image, size, interpolation=area)
        coding = [cv2.IMWRITE_JPEG_QUALITY, QUALITY] if out.suffix == ".jpg" else []
        cv2.imwrite(str(out), image, coding)

    return work


def pyvips(job: str) -> Work:
    os.environ.setdefault("VIPS_CONCURRENCY", "1")
    import pyvips as vips

    def five(image: Any) -> Any:
        x, y = (image.width - CROP[0]) // 2, (image.height - CROP[1]) // 2
        image = image.crop(x, y, *CROP).resize(HALF[0] / CROP[0], kernel="linear")
        return image.fliphor().gaussblur(1).invert()

    def work(path: Path, out: Path) -> None:
        if job in ("flip", "png", "tiny"):
            image = vips.Image.new_from_file(str(path)).rot180()
        elif job == "five":
            image = five(vips.Image.new_from_file(str(path), access="sequential"))
        else:
            image = vips.Image.new_from_file(str(path))
            width, height = JOBS[job].size((image.width, image.height))
            image = vips.Image.thumbnail(str(path), width, height=height, size="force")
        options = {"Q": QUALITY, "subsample_mode": "on"} if out.suffix == ".jpg" else {}
        image.write_to_file(str(out), **options)

    return work


def torchvision(job: str, files: list[Path], out: Path, batch: int = 32) -> None:
    """JPEGs on a GPU, in batches; the encoder takes one size at a time."""
    import torch
    from torchvision import io
    from torchvision.transforms.v2 import functional

    for begin in range(0, len(files), batch):
        part = files[begin : begin + batch]
        images = io.decode_jpeg([io.read_file(str(path)) for path in part], device="cuda")
        if job in ("flip", "tiny"):
            made = [torch.flip(image, (1, 2)) for image in images]
        else:
            sizes = [JOBS[job].size((image.shape[2], image.shape[1])) for image in images]
            made = [
                functional.resize(image, [height, width], antialias=True)
                for image, (width, height) in zip(images, sizes, strict=True)
            ]
        for path, data in zip(part, io.encode_jpeg(made, quality=QUALITY), strict=True):
            io.write_file(str(out / path.name), data.cpu())


def nvimagecodec(job: str, files: list[Path], out: Path, batch: int = 32) -> None:
    """NVIDIA's own: nvImageCodec, CV-CUDA, nvImageCodec, one batch after the other."""
    import cvcuda
    from nvidia import nvimgcodec

    decoder, encoder = nvimgcodec.Decoder(), nvimgcodec.Encoder()
    params = nvimgcodec.EncodeParams(quality_value=QUALITY)

    def made(image: Any) -> Any:
        tensor = cvcuda.as_tensor(image, "HWC")
        if job in ("flip", "tiny"):
            return cvcuda.flip(tensor, -1)
        height, width, _ = tensor.shape
        wide, high = JOBS[job].size((width, height))
        return cvcuda.hq_resize(
            tensor, (high, wide), antialias=True, interpolation=cvcuda.Interp.LINEAR
        )

    for begin in range(0, len(files), batch):
        part = files[begin : begin + batch]
        results = [made(image) for image in decoder.read([str(path) for path in part])]
        cvcuda.Stream.current.sync()
        images = [nvimgcodec.as_image(result.cuda()) for result in results]
        encoder.write([str(out / path.name) for path in part], images, params=params)


def floor(source: str, threads: str) -> None:
    """Decode and encode every file of a folder and do nothing else; print the seconds.

    Files are read before, and nothing is written: no program on this codec can be faster.
    """
    import imagecodecs
    import numpy as np

    paths = sorted(Path(source).iterdir())
    files = [path.read_bytes() for path in paths]
    png = paths[0].suffix == ".png"
    decode = imagecodecs.png_decode if png else imagecodecs.jpeg8_decode
    shape = decode(files[0]).shape
    rooms = [np.empty(shape, np.uint8) for _ in range(int(threads))]

    def both(share: int) -> None:
        room = rooms[share]
        for data in files[share :: len(rooms)]:
            decode(data, out=room)
            if png:
                imagecodecs.png_encode(room, level=1, strategy=3, filter=128)
            else:
                imagecodecs.jpeg8_encode(room, level=QUALITY)

    with ThreadPoolExecutor(len(rooms)) as pool:
        begin = time.perf_counter()
        list(pool.map(both, range(len(rooms))))
        seconds = time.perf_counter() - begin
    print(json.dumps({"both": seconds}))


SCRIPTS: dict[str, Callable[[str], Work]] = {"pillow": pillow, "opencv": opencv, "pyvips": pyvips}
BATCHED: dict[str, Callable[[str, list[Path], Path], None]] = {
    "torchvision": torchvision,
    "nvimagecodec": nvimagecodec,
}

if __name__ == "__main__":
    if sys.argv[1] == "floor":
        floor(*sys.argv[2:])
    else:
        main(*sys.argv[1:])
