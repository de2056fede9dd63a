"""Hostile files: cut anywhere, with bytes flipped; and a folder of everything that can be written.

``CVCLI_FUZZ_SECONDS`` makes the fuzzing longer than the few seconds it takes by default.
"""

import os
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import noise
from PIL import Image
from test_cli import FLIP, cvcli
from test_frames import drawings, saved
from test_metadata import SRGB, TURNED_XMP, exif, picture

from cvcli import codecs
from cvcli.batch.album import Album, Care
from cvcli.batch.plan import Job
from cvcli.errors import CvcliError, ImageError
from cvcli.ops import load_chain

SECONDS = float(os.environ.get("CVCLI_FUZZ_SECONDS", "6"))
SMALL = (16, 12)
KEPT = {"exif": b"Exif\0\0" + exif(), "icc_profile": SRGB}


def animation(format, **options):
    images = drawings(alpha=True)
    extra = {"save_all": True, "append_images": images[1:3], "duration": 50}
    return saved(images[0], format, **extra | options)


SEEDS = {
    "jpeg": saved(picture(SMALL), "JPEG", **KEPT, xmp=TURNED_XMP, comment=b"note"),
    "progressive": saved(picture(SMALL), "JPEG", progressive=True, quality=30),
    "cmyk": saved(Image.fromarray(noise((12, 16, 4), "uint8"), "CMYK"), "JPEG"),
    "png": saved(picture(SMALL), "PNG", **KEPT, dpi=(72, 72)),
    "palette": saved(picture(SMALL).quantize(9), "PNG", transparency=3),
    "apng": animation("PNG"),
    "webp": saved(picture(SMALL), "WEBP", **KEPT, xmp=TURNED_XMP),
    "lossless": saved(picture(SMALL, 4), "WEBP", lossless=True),
    "moving": animation("WEBP", lossless=True),
    "tiff": saved(picture(SMALL), "TIFF", compression="tiff_lzw", icc_profile=SRGB),
    "pages": saved(picture(SMALL), "TIFF", save_all=True, append_images=[picture((9, 9), 1)]),
    "float": codecs.encode(noise((9, 7, 3), "float32"), "TIFF"),
    "fax": saved(picture(SMALL, 1).convert("1"), "TIFF", compression="group4"),
    "gif": animation("GIF"),
    "bmp": saved(picture(SMALL), "BMP"),
    "ppm": saved(picture(SMALL), "PPM"),
    "tga": saved(picture(SMALL), "TGA", compression="tga_rle"),
    "ico": saved(picture(SMALL, 4), "ICO"),
    "avif": saved(picture(SMALL), "AVIF", **KEPT),
    "jp2": saved(picture(SMALL), "JPEG2000"),
    "qoi": saved(picture(SMALL), "QOI"),
}


def whole_way(data, frame=None, fail_on="error"):
    """Read every picture of a file with its metadata and write it again, as a run does.

    Returns the error that it ends with, None if it succeeds.
    """
    care = Care(frame=frame)
    job, chain = Job(0, Path("a"), Path("b"), None), load_chain("flip --axis -1")
    try:
        header = codecs.probe(data, 100_000)
        album = Album.opened(job, data, header, care, fail_on)
        for found in album.pictures(data, chain, 1_000_000):
            spec = found.plan.source
            out = np.zeros(spec.shape, spec.dtype)
            try:
                album.read(found, out)
            except ImageError as error:
                if not album.tolerates(error) or not codecs.salvage(data, found.header, out):
                    raise
            album.add(found, out)
        album.encoded(None)
    except CvcliError as error:
        return error
    return None


def check(data, *options):
    error = whole_way(data, *options)
    if error is not None:
        message = str(error)
        assert message and "\n" not in message and "Traceback" not in message
        assert len(message) < 300
    return error


@pytest.mark.parametrize("name", SEEDS)
def test_files_cut_anywhere_end_in_a_clear_error_or_a_picture(name):
    data = SEEDS[name]
    assert whole_way(data) is None
    cuts = range(0, len(data), max(1, len(data) // 150))
    failed = sum(check(data[:cut]) is not None for cut in cuts)
    # A few formats are whole before their last bytes; of none is half a file enough.
    assert failed > 0.45 * len(cuts)


def test_files_with_random_bytes_flipped():
    """A fixed budget of time; the seeds are fixed too, so a longer run covers a shorter one."""
    end, number = time.monotonic() + SECONDS, 0
    slowest = 0.0
    while time.monotonic() < end:
        rng = np.random.default_rng(number)
        data = bytearray(list(SEEDS.values())[number % len(SEEDS)])
        for _ in range(int(rng.integers(1, 6))):
            data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
        if number % 3 == 0:
            at = int(rng.integers(len(data)))
            data[at : at + int(rng.integers(1, 9))] = bytes(rng.integers(0, 256, 4, np.uint8))
        begin = time.monotonic()
        check(bytes(data), (None, 0, 1)[number // 7 % 3], ("error", "none")[number // 3 % 2])
        slowest = max(slowest, time.monotonic() - begin)
        number += 1
    assert number > 20 * SECONDS and slowest < 5


def test_a_folder_of_broken_files_gives_an_error_each_and_no_traceback(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    suffixes = {"jpeg": "jpg", "progressive": "jpg", "cmyk": "jpg", "palette": "png"}
    suffixes |= {"lossless": "webp", "moving": "webp", "pages": "tif", "float": "tif", "fax": "tif"}
    for name, data in SEEDS.items():
        (folder / f"{name}-whole.{suffixes.get(name, name)}").write_bytes(data)
        (folder / f"{name}.{suffixes.get(name, name)}").write_bytes(data[: len(data) // 3])
    done = cvcli(*FLIP, folder, tmp_path / "out")
    assert done.returncode == 1
    failures = [line for line in done.stderr.split("\n") if line.startswith("cvcli: ")]
    assert len(failures) == len(SEEDS)
    names = {path.stem for path in (tmp_path / "out").iterdir()}
    assert names == {f"{name}-whole" for name in SEEDS}
