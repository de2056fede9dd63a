"""``--fail-on none`` keeps of a broken file what its library gets out of it."""

import io
import threading
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from conftest import noise
from PIL import Image, ImageFile, ImageFilter
from test_cli import FLIP, load
from test_metadata import run, saved

from cvcli import codecs
from cvcli.codecs import tiff

SMOOTH = Image.fromarray(noise((120, 160, 3), "uint8")).filter(ImageFilter.GaussianBlur(2))
DEEP = np.asarray(SMOOTH).astype(np.uint16) * 257


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def first(data):
    """A TIFF with its directory in front, as some writers have it; one strip of 10 rows each."""
    at = int.from_bytes(data[4:8], "little")
    table, moved = bytearray(data[at:]), len(data) - at
    count = int.from_bytes(table[:2], "little")
    for entry in range(2, 2 + 12 * count, 12):
        tag, kind, number = (
            int.from_bytes(table[entry + a : entry + b], "little")
            for a, b in ((0, 2), (2, 4), (4, 8))
        )
        size = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8}[kind] * number
        value = int.from_bytes(table[entry + 8 : entry + 12], "little")
        if size > 4:
            shift = 8 - at if value >= at else moved
            table[entry + 8 : entry + 12] = (value + shift).to_bytes(4, "little")
        if tag == 273:
            place = value - at if value >= at else None
            assert place is not None
            for item in range(place, place + 4 * number, 4):
                offset = int.from_bytes(table[item : item + 4], "little") + moved
                table[item : item + 4] = offset.to_bytes(4, "little")
    return data[:4] + (8).to_bytes(4, "little") + bytes(table) + data[8:at]


def strips(compression):
    options = {"photometric": "rgb", "compression": compression, "rowsperstrip": 10}
    return first(bytes(imagecodecs.tiff_encode(DEEP, **options)))


KINDS = {
    "jpeg": saved(SMOOTH, "JPEG"),
    "png": saved(SMOOTH, "PNG"),
    "webp": saved(SMOOTH, "WEBP"),
    "lossless.webp": saved(SMOOTH.convert("RGBA"), "WEBP", lossless=True, exif=b"Exif\0\0II*\0"),
    "tif": saved(SMOOTH, "TIFF"),
    "none.tif": strips("none"),
    "lzw.tif": strips("lzw"),
    "deflate.tif": strips("deflate"),
    "palette.tif": saved(SMOOTH.quantize(99), "TIFF"),
    "gif": saved(SMOOTH, "GIF"),
    "bmp": saved(SMOOTH, "BMP"),
    "ppm": saved(SMOOTH, "PPM"),
    "tga": saved(SMOOTH, "TGA", compression="tga_rle"),
    "pcx": saved(SMOOTH, "PCX"),
    "qoi": saved(SMOOTH, "QOI"),
    "dds": saved(SMOOTH, "DDS"),
}
WHOLE_ONLY = ("jp2", "avif", "ico", "npy")


def pixels(data):
    header = codecs.probe(data)
    out = np.empty(header.spec.shape, header.spec.dtype)
    codecs.decode(data, header, out)
    return out


def test_rows_that_are_there_are_kept(capfd):
    Path("in").mkdir()
    for name, data in KINDS.items():
        Path(f"in/{name.replace('.', '-')}.{name}").write_bytes(data[: len(data) * 7 // 10])
    words = ("run", "flip --axis 0", "in", "out", "--format", "npy")
    run(*words, code=1)
    said = capfd.readouterr().err
    assert said.count("\ncvcli: in/") == len(KINDS)
    assert "tip: --fail-on none keeps what there is of it" in said
    run(*words, "--fail-on", "none")
    assert capfd.readouterr().err.count("what there is of it was kept") == len(KINDS)
    for name, data in KINDS.items():
        (path,) = Path("out").glob(f"{name.replace('.', '-')}.*")
        got, whole = np.load(path)[::-1], pixels(data)
        assert got.shape == whole.shape and got.dtype == whole.dtype
        same = (got == whole).all(axis=(1, 2))
        assert 0.4 < same.mean() < 0.9, (name, same.mean())


def test_what_is_decoded_as_a_whole_says_so(capfd):
    for name in WHOLE_ONLY:
        if name == "npy":
            file = io.BytesIO()
            np.save(file, np.asarray(SMOOTH))
            data = file.getvalue()
        else:
            data = saved(SMOOTH, "JPEG2000" if name == "jp2" else name.upper())
        Path(f"a.{name}").write_bytes(data[: len(data) * 7 // 10])
        run(*FLIP, "--fail-on", "none", f"a.{name}", "out", "--format", "tif", code=1)
        said = capfd.readouterr().err
        assert "was kept" not in said and "tip" not in said
        assert ("nothing of it can be kept" in said) == (name in ("jp2", "npy")), name
    assert not Path("out").exists()


def test_one_bad_strip_costs_its_own_rows_and_those_behind_it():
    data = bytearray(strips("deflate"))
    whole = pixels(bytes(data))
    at = tiff._tags(bytes(data), tiff._layout(bytes(data)), 8)[273][6]
    data[at : at + 30] = bytes(30)
    Path("a.tif").write_bytes(bytes(data))
    run("flip", "--axis", 0, "a.tif", "b.tif", code=1)
    run("flip", "--axis", 0, "a.tif", "b.tif", "--fail-on", "none")
    got = pixels(Path("b.tif").read_bytes())[::-1]
    np.testing.assert_array_equal(got[:60], whole[:60])
    assert not got[70:].any()


def test_a_broken_picture_that_is_turned_and_white_is_zero():
    block = Image.Exif()
    block[0x0112] = 6
    data = saved(SMOOTH.convert("L").quantize(9), "TIFF", exif=block)
    Path("a.tif").write_bytes(data[: len(data) - 160 * 30])
    Path("b.tif").write_bytes(data)
    run("flip", "--axis", 0, "a.tif", "b.tif", "out", "--fail-on", "none")
    got, whole = load(Path("out/a.tif")), load(Path("out/b.tif"))
    assert got.shape == whole.shape == (160, 120, 1)
    np.testing.assert_array_equal(got[:, 30:], whole[:, 30:])


def test_no_setting_of_the_whole_process_is_touched():
    """Other threads go on to fail on files that are cut."""
    cut = KINDS["bmp"][:20_000]
    header = codecs.probe(cut)
    seen = []

    def watch():
        for _ in range(30):
            seen.append(ImageFile.LOAD_TRUNCATED_IMAGES)

    thread = threading.Thread(target=watch)
    thread.start()
    for _ in range(30):
        assert codecs.salvage(cut, header, np.empty(header.spec.shape, np.uint8))
    thread.join()
    assert seen == [False] * 30
