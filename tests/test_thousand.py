"""A folder of a thousand files of every kind that can be written, turned twice."""

import hashlib
import io
import json
from collections.abc import Iterator
from itertools import cycle, product

import emulator
import imagecodecs
import numpy as np
import pytest
from conftest import GPU, noise
from PIL import Image, ImageOps, PngImagePlugin
from test_cli import FLIP
from test_frames import drawings
from test_metadata import SRGB, saved

import cvcli as api
from cvcli import codecs
from cvcli.batch.orient import oriented
from cvcli.cli.app import run_app
from cvcli.core.apply import apply
from cvcli.core.chain import Chain

SIZES = ((31, 20), (1, 7), (17, 1), (8, 9))
MODES = {
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "WEBP": ("RGB", "RGBA"),
    "TIFF": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16", "F"),
    "GIF": ("1", "L", "P"),
    "BMP": ("1", "L", "P", "RGB"),
    "DIB": ("1", "L", "P", "RGB"),
    "PPM": ("1", "L", "RGB"),
    "TGA": ("L", "LA", "P", "RGB", "RGBA"),
    "QOI": ("RGB", "RGBA"),
    "JPEG2000": ("L", "LA", "RGB", "RGBA", "I;16"),
    "PCX": ("1", "L", "P", "RGB"),
    "SGI": ("L", "RGB", "RGBA"),
    "ICO": ("RGBA",),
    "DDS": ("L", "LA", "RGB", "RGBA"),
}
# Ways to write the same, by Pillow; a mode that a way is not for has none of its files.
WAYS = {
    "PNG": [{"compress_level": 0}, {"compress_level": 9}],
    "WEBP": [{"method": 0}, {"method": 6, "quality": 10}],
    "TIFF": [
        {"compression": name}
        for name in ("raw", "tiff_lzw", "tiff_adobe_deflate", "tiff_deflate", "packbits", "lzma")
    ]
    + [{"big_tiff": True}],
    "TGA": [{"compression": "tga_rle"}, {"orientation": 1}],
    "GIF": [{"interlace": 0}, {"optimize": True}],
    "ICO": [{"bitmap_format": "bmp"}],
}
FAX = [{"compression": name} for name in ("group3", "group4", "tiff_ccitt")]
WITH_EXIF = ("PNG", "WEBP", "TIFF")
SUFFIX = {"JPEG2000": "jp2", "TIFF": "tif"}
EXACT = {"WEBP": {"lossless": True, "exact": True}}


def of_mode(mode, size, seed, colours=37):
    pixels = noise((size[1], size[0], 4), "uint8", seed)
    if mode in ("I;16", "F"):
        dtype = "uint16" if mode == "I;16" else "float32"
        return Image.fromarray(noise((size[1], size[0], 1), dtype, seed)[:, :, 0])
    image = Image.fromarray(pixels)
    return image.convert("RGB").quantize(colours) if mode == "P" else image.convert(mode)


def described(format, mode, turn, seed):
    """What is said beside the pixels: a maker, an orientation, a profile, a resolution, a text."""
    told = {}
    if format in WITH_EXIF:
        block = Image.Exif()
        block[0x010F], block[0x0112] = f"Some Make {seed}", turn
        told["exif"] = block
        if mode in ("P", "RGB", "RGBA") and seed % 3:
            told["icc_profile"] = SRGB
    if format in ("PNG", "TIFF", "BMP"):
        told["dpi"] = (100 + seed % 200, 300)
    if format == "PNG":
        told["pnginfo"] = PngImagePlugin.PngInfo()
        told["pnginfo"].add_text("Title", f"number {seed}")
    return told


def by_pillow(counter):
    """Each mode at each size and, where there is EXIF, in each orientation; then each way."""
    Image.init()
    # Before Pillow 13 an RGB image of one column became a file that it could not read.
    one_column = saved(Image.new("RGB", (1, 7)), "PCX")
    narrow = None if reads_back(one_column) else "PCX"
    for format, modes in MODES.items():
        if format not in Image.SAVE:
            continue  # by an older Pillow
        turns = range(1, 9) if format in WITH_EXIF else (1,)
        kinds = [(*kind, {}) for kind in product(modes, turns, SIZES)]
        ways = zip(product(modes, WAYS.get(format, ()), SIZES[::3]), cycle(turns))
        kinds += [(mode, turn, size, way) for (mode, way, size), turn in ways]
        kinds += [("1", 1, size, way) for way, size in product(FAX, SIZES) if format == "TIFF"]
        for mode, turn, size, way in kinds:
            rare = way.get("compression") == "lzma" and mode in ("1", "P")
            if rare or (format in ("ICO", narrow) and 1 in size):
                continue  # not written like this
            number = next(counter)
            options = EXACT.get(format, {}) | described(format, mode, turn, number) | way
            options |= {"sizes": [size]} if format == "ICO" else {}
            options |= {"irreversible": False} if format == "JPEG2000" else {}
            yield format, saved(of_mode(mode, size, number), format, **options)


def palettes(counter):
    """Palettes of few bits, with a clear place or clear to some degree, and clear colours."""
    for bits, size in product((1, 2, 4), SIZES[::3]):
        yield "PNG", saved(of_mode("P", size, next(counter), 2**bits), "PNG", bits=bits)
    for format, size in product(("PNG", "GIF"), SIZES[::3]):
        yield format, saved(of_mode("P", size, next(counter)), format, transparency=3)
    for size in SIZES[::3]:
        some = bytes(range(0, 200, 10))
        yield "PNG", saved(of_mode("P", size, next(counter)), "PNG", transparency=some)
        yield "PNG", saved(of_mode("L", size, next(counter)), "PNG", transparency=7)
        yield "PNG", saved(of_mode("RGB", size, next(counter)), "PNG", transparency=(1, 2, 3))


def by_imagecodecs(counter):
    """Every depth and number of channels, of which Pillow writes a few only."""
    for dtype, channels, size in product(("uint8", "uint16"), (1, 2, 3, 4), SIZES):
        pixels = noise((size[1], size[0], channels), dtype, next(counter))
        yield "PNG", bytes(imagecodecs.png_encode(pixels[:, :, 0] if channels == 1 else pixels))
    kinds = product(("uint8", "uint16", "float32"), (1, 2, 3, 4), SIZES[::3])
    for (dtype, channels, size), compression in product(kinds, ("none", "lzw", "deflate", "zstd")):
        number = next(counter)
        pixels = noise((size[1], size[0], channels), dtype, number)
        yield (
            "TIFF",
            bytes(
                imagecodecs.tiff_encode(
                    pixels[:, :, 0] if channels == 1 else pixels,
                    photometric="rgb" if channels > 2 else "minisblack",
                    extrasample="unassalpha" if channels in (2, 4) else None,
                    compression=compression,
                    predictor=bool(number % 2) and compression != "none",
                )
            ),
        )


def arrays(counter):
    """NPY files of each dtype, with and without an axis of channels, in C's and Fortran's order."""
    shapes = ((20, 31), (20, 31, 1), (9, 8, 2), (20, 31, 3), (7, 1, 4), (1, 17), (1, 17, 3))
    for dtype, shape, order in product(("uint8", "uint16", "float32"), shapes, "CF"):
        pixels = noise((*shape, 1), dtype, next(counter))[..., 0]
        file = io.BytesIO()
        np.save(file, np.asarray(pixels, order=order))
        yield "NPY", file.getvalue()


def many(counter):
    """Animations, with and without alpha, and pages of several sizes and kinds."""
    for format, alpha, frames in product(("GIF", "PNG", "WEBP", "TIFF"), (False, True), (2, 3, 4)):
        for way in range(3):
            images = [image.rotate(90 * way, expand=True) for image in drawings(alpha)[:frames]]
            number = next(counter)
            options = {"save_all": True, "append_images": images[1:], "duration": 10 * number}
            options |= {"loop": way} if way else {}
            options |= {"disposal": way} if format == "GIF" else {}
            yield format, saved(images[0], format, **EXACT.get(format, {}) | options)
    for first, second in product(MODES["TIFF"], MODES["TIFF"]):
        pages = [of_mode(mode, SIZES[3], next(counter)) for mode in (first, second)]
        yield "TIFF", saved(pages[0], "TIFF", save_all=True, append_images=pages[1:])


def reads_back(data):
    """Whether Pillow reads what it wrote: some of its versions fail on pages and tiny images."""
    try:
        with Image.open(io.BytesIO(data)) as image:
            for number in range(getattr(image, "n_frames", 1)):
                image.seek(number)
                image.load()
    except (OSError, SyntaxError, ValueError):
        return False
    return True


def corpus(folder) -> Iterator[bytes]:
    folder.mkdir()
    counter = iter(range(10_000))
    for make in (by_pillow, palettes, by_imagecodecs, arrays, many):
        for format, data in make(counter):
            if make in (by_pillow, palettes, many) and not reads_back(data):
                continue
            suffix = SUFFIX.get(format, format.lower())
            (folder / f"{make.__name__}-{next(counter):04}.{suffix}").write_bytes(data)
            yield data


@pytest.fixture(scope="module")
def thousand(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus") / "in"
    assert len({hashlib.sha256(data).digest() for data in corpus(folder)}) >= 1000
    return folder


def all_pictures(data):
    """The pixels of each picture, upright, with how long it shows."""
    shown = []
    for frame in codecs.frames(data, codecs.probe(data)):
        spec = frame.header.spec
        out = np.zeros(spec.shape, spec.dtype)
        frame.read(out)
        chain = oriented(Chain(()), frame.header.orientation)
        if len(chain):
            out = apply(chain, api.as_tensor(out, "HWC")).numpy()
        shown.append((out, frame.duration))
    return shown


def by_another_reader(data):
    """The first picture upright, as Pillow reads it; None where it can't, or not at its depth."""
    try:
        image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
        deep = image.mode in ("F", "I") or image.mode.startswith("I;16")
        return np.asarray(image if deep else image.convert("RGBA"))
    except (OSError, ValueError):
        return None


def told(data):
    """What is said beside the pixels, without what must change."""
    header = codecs.probe(data)
    found = codecs.metadata(data, header)
    try:
        maker = Image.open(io.BytesIO(data)).getexif().get(0x010F)
    except OSError:
        maker = None
    # Palettes and bits come back in these, a key colour as alpha.
    exact = header.format in ("PNG", "TIFF") and header.spec.channels not in (2, 4)
    return {
        "format": header.format,
        "mode": exact and header.mode,
        "compression": header.coding.compression,
        "plays": header.plays,
        "maker": maker,
        "icc": found.icc,
        # A quarter turn changes its sides.
        "resolution": found.density and sorted(found.density.per("inch")),
        "texts": found.texts,
        "comments": found.comments,
        "colour": found.colour,
    }


def turned(source, target, device):
    """Turn a folder; a failure names its images, with the reasons and what was noted."""
    report = target.with_suffix(".json")
    words = [*FLIP, "-q", "--device", device, "--report", report, source, target]
    code = run_app([str(word) for word in words])
    rows = json.loads(report.read_text())["images"] if report.exists() else []
    failed = [(row["input"], row["error"], row["notes"]) for row in rows if row["status"] != "ok"]
    assert (code, failed) == (0, []), f"exit code {code}, of {len(rows)} images failed: {failed}"
    elsewhere = [(row["input"], row["notes"]) for row in rows if row["device"] != device]
    assert not elsewhere
    return {row["input"]: row["notes"] for row in rows if row["notes"]}


@pytest.mark.parametrize("device", ["cpu", GPU])
def test_twice_turned_is_the_original(thousand, tmp_path, device):
    notes = turned(thousand, tmp_path / "once", device)
    notes |= turned(tmp_path / "once", tmp_path / "twice", device)
    names = sorted(path.name for path in thousand.iterdir())
    assert sorted(path.name for path in (tmp_path / "twice").iterdir()) == names
    for name in names:
        before, after = ((folder / name).read_bytes() for folder in (thousand, tmp_path / "twice"))
        one, other = all_pictures(before), all_pictures(after)
        assert len(one) == len(other), name
        for (first, duration), (second, kept) in zip(one, other, strict=True):
            assert first.dtype == second.dtype and duration == kept, name
            np.testing.assert_array_equal(second, first, f"{name}: {notes.get(name)}")
        seen, again = by_another_reader(before), by_another_reader(after)
        if seen is not None:
            np.testing.assert_array_equal(again, seen, f"{name}, read by Pillow")
        assert codecs.probe(after).orientation == 1, name
        assert told(after) == told(before), name


def test_the_emulated_gpu_writes_the_same_files(thousand, tmp_path):
    """Every kind of pixel and turn through the batches of a GPU, in its own kernels."""
    device = emulator.install()
    turned(thousand, tmp_path / "gpu", device.name)
    turned(thousand, tmp_path / "cpu", "cpu")
    assert device.launches > 20
    for path in (tmp_path / "cpu").iterdir():
        assert path.read_bytes() == (tmp_path / "gpu" / path.name).read_bytes(), path.name
