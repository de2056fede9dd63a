"""The NPY codec against NumPy, and results that only roomy formats can hold on the command line."""

import io
import json
import subprocess
import sys
import tarfile
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from test_codecs import assert_fails, decoded, noise

from cvcli import codecs
from cvcli.core.spec import ImageSpec
from cvcli.errors import ImageError

DTYPES = (np.uint8, np.uint16, np.float32)
SHAPES = [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4), (1, 5, 7), (3, 5, 7), (1, 1, 1), (3, 5, 4)]


def file_of(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version, allow_pickle=False)
    return file.getvalue()


def with_text(text, version=1, samples=bytes(64)):
    length = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes((version, 0)) + length + text.encode() + samples


def run(*args):
    command = [sys.executable, "-m", "cvcli", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def load(path):
    return np.load(path, allow_pickle=False)


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "in" / "photo.jpg"
    path.parent.mkdir()
    Image.fromarray(noise(23, 11)).save(path, quality=90)
    return path


def pixels_of(path):
    return np.asarray(Image.open(path))


# Files


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", ["u1", "<u2", ">u2", "<f4", ">f4", "<f2", ">f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numpys_files_are_read(version, dtype, order):
    for shape in SHAPES:
        values = np.arange(np.prod(shape)).reshape(shape) % 251
        data = file_of(np.asarray(values, dtype, order=order), version)
        out = decoded(data)
        assert out.dtype.kind == np.dtype(dtype).kind and out.dtype.isnative
        assert np.array_equal(out.reshape(shape), values)


@settings(deadline=None, max_examples=60)
@given(
    st.tuples(st.integers(1, 9), st.integers(1, 9), st.integers(1, 4)),
    st.sampled_from(DTYPES),
    st.booleans(),
)
def test_numpy_reads_what_is_written(size, dtype, planar):
    height, width, channels = size
    pixels = noise(width, height, channels, dtype)
    image = pixels.transpose(2, 0, 1) if planar else pixels[::-1, ::-1]
    data = codecs.encode(image, "NPY", planar=planar)
    back = np.load(io.BytesIO(data), allow_pickle=False)
    assert back.dtype == dtype and np.array_equal(back, image)
    assert data.find(b"\n") % 64 == 63
    spec = codecs.probe(data).spec
    if not planar or width > 4:
        assert spec == ImageSpec(height, width, channels, back.dtype.name, planar)
        assert np.array_equal(decoded(data), image)


def test_every_float_survives():
    odd = np.array([[np.nan, np.inf, -np.inf, -0.0, 1e-45, 3e38]], np.float32)[:, :, None]
    assert decoded(codecs.encode(odd, "NPY")).tobytes() == odd.tobytes()


def test_gray_keeps_the_axes_that_it_had():
    flat = noise(7, 5, 1)[:, :, 0]
    header = codecs.probe(file_of(flat))
    assert header.spec == ImageSpec(5, 7, 1, "uint8")
    image = decoded(file_of(flat))
    for source, planar, shape in ((header, False, (5, 7)), (None, False, (5, 7, 1))):
        data = codecs.encode(image, "NPY", source=source, planar=planar)
        assert np.load(io.BytesIO(data)).shape == shape
    column = np.zeros((1, 5, 1), np.uint8)
    data = codecs.encode(column, "NPY", source=header, planar=True)
    assert np.load(io.BytesIO(data)).shape == (1, 5, 1)


def test_doubles_are_noted():
    for dtype, notes in ((np.float64, 1), (np.float16, 0), (np.float32, 0)):
        data = file_of(np.full((2, 2), 1e300 if dtype == np.float64 else 0.5, dtype))
        assert len(codecs.metadata(data, codecs.probe(data)).cut) == notes
        assert decoded(data)[0, 0, 0] == (np.inf if dtype == np.float64 else 0.5)


def test_names():
    assert codecs.format_for_suffix(".NPY") == codecs.format_by_name("npy") == "NPY"
    assert codecs.suffix_for_format("NPY") == ".npy"
    assert codecs.readable(".npy") and codecs.recognised(file_of(noise(5, 5))[:32])


# Files that are none


@pytest.mark.parametrize("shape", [(), (5,), (5, 7, 5), (2, 5, 7, 3), (5, 7, 0)])
def test_arrays_that_are_no_images(shape):
    assert_fails(file_of(np.zeros(shape, np.uint8)), "is no image")


def test_no_pixels():
    assert_fails(file_of(np.zeros((0, 7, 3), np.uint8)), "no pixels")


@pytest.mark.parametrize("dtype", ["i2", "u4", "c8", "?", "S3", "M8[s]"])
def test_other_dtypes_are_refused(dtype):
    assert_fails(file_of(np.zeros((5, 7), dtype)), "of dtype", "isn't supported")


def test_nothing_is_unpickled():
    file = io.BytesIO()
    np.save(file, np.array([[print]], object), allow_pickle=True)
    assert_fails(file.getvalue(), "'|O'", "isn't supported")
    assert_fails(file_of(np.zeros((5, 7), [("a", "u1")])), "no plain array")


GOOD = "{'descr': '|u1', 'fortran_order': False, 'shape': (4, 4), }"


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "corrupt NPY header"),
        ("{}", "corrupt NPY header"),
        ("{" * 9000, "corrupt NPY header"),
        ("{" + "(" * 9000 + "}", "no plain array"),
        ("{" + "-" * 9000 + "1}", "no plain array"),
        (GOOD.replace("(4, 4)", "(4, -4)"), "no plain array"),
        (GOOD.replace("(4, 4)", "(4, 4, " * 900), "no plain array"),
        (GOOD.replace("(4, 4)", "(" + "9" * 5000 + ", 4)"), "no plain array"),
        (GOOD.replace("(4, 4)", "True"), "corrupt NPY header"),
        (GOOD.replace("'|u1'", "False"), "corrupt NPY header"),
        (GOOD.replace("False", "'no'"), "corrupt NPY header"),
        (GOOD.replace("False", "exit()"), "no plain array"),
        (GOOD.replace("}", "'more': 'x'}"), "no plain array"),
        (GOOD + " " * 10_000, "more than 10000"),
    ],
)
def test_hostile_headers(text, words):
    for version in (1, 2, 3):
        assert_fails(with_text(text, version), words)


def test_good_headers_as_others_write_them():
    for text in (GOOD, GOOD.replace("4)", "4L)"), GOOD.replace("'", '"'), GOOD.replace(", }", "}")):
        assert decoded(with_text(text)).shape == (4, 4, 1)


def test_unknown_versions():
    for version in (0, 4, 255):
        assert_fails(with_text(GOOD, version), "version", "isn't supported")


def test_huge_sizes_cost_nothing_before_they_are_refused():
    data = with_text(GOOD.replace("(4, 4)", "(999999999999, 999999999999, 3)"))
    tracemalloc.start()
    with pytest.raises(ImageError, match="more than the limit") as caught:
        codecs.probe(data)
    assert tracemalloc.get_traced_memory()[1] < 1 << 20
    tracemalloc.stop()
    assert "--max-pixels" in caught.value.tip
    with pytest.raises(ImageError, match="limit of 15"):
        codecs.probe(with_text(GOOD), max_pixels=15)
    assert codecs.probe(with_text(GOOD), max_pixels=16).frames == 1


def test_every_truncation_is_an_error():
    data = file_of(noise(7, 5))
    for length in range(len(data)):
        with pytest.raises(ImageError, match=r"truncated|empty|not an image"):
            decoded(data[:length])
    assert np.array_equal(decoded(data + b"more"), decoded(data))


def test_flipped_bits_give_an_array_of_numpys_or_an_error():
    pixels = noise(7, 5, 3, np.uint16)
    data = file_of(pixels)
    errors = 0
    for at in range(data.find(b"\n") + 1):
        for bit in range(8):
            flipped = bytearray(data)
            flipped[at] ^= 1 << bit
            try:
                out = decoded(bytes(flipped))
            except ImageError:
                errors += 1
                continue
            theirs = np.load(io.BytesIO(flipped), allow_pickle=False)
            assert np.array_equal(out, theirs.reshape(out.shape), equal_nan=True)
    assert errors > 300


# The command line


@pytest.mark.parametrize(
    "step, dtype",
    [
        ("convertto --dtype float32", "float32"),
        ("normalize --mean 127.5 --std 60", "float32"),
        ("convertto --dtype uint16 --scale 257", "uint16"),
        ("cvtcolor --code rgb2lab", "uint8"),
    ],
)
def test_results_go_to_npy_as_they_are(photo, tmp_path, step, dtype):
    by_suffix, folder = tmp_path / "one.npy", tmp_path / "out"
    assert run("run", step, photo, by_suffix).returncode == 0
    assert run("run", step, photo.parent, folder, "--format", "npy").returncode == 0
    array = load(by_suffix)
    assert array.shape == (11, 23, 3) and array.dtype == dtype
    assert (folder / "photo.npy").read_bytes() == by_suffix.read_bytes()
    if step.startswith("normalize"):
        expected = (pixels_of(photo).astype(np.float64) - 127.5) / 60
        assert np.abs(array - expected).max() < 1e-6
    if dtype == "float32":
        assert run("run", step, photo, tmp_path / "one.tiff").returncode == 0
        tiff = decoded((tmp_path / "one.tiff").read_bytes())
        assert np.array_equal(tiff, array)


@pytest.mark.parametrize(
    "step, output, told",
    [
        ("convertto --dtype float32", "a.jpg", ("JPEG can't hold float32", "tiff or npy")),
        ("normalize", "a.png", ("PNG can't hold float32", "tiff or npy")),
        ("convertto --dtype uint16", "a.webp", ("WEBP can't hold uint16", "png, tiff or npy")),
        ("reformat --layout planar", "a.jpg", ("JPEG can't hold planar", "--format npy")),
        ("reformat --layout planar", "a.tiff", ("TIFF can't hold planar", "--format npy")),
        ("normalize", "folder", ("JPEG can't hold float32", "--format tiff or npy")),
    ],
)
def test_what_a_chain_makes_is_refused_with_a_tip(photo, tmp_path, step, output, told):
    done = run("run", step, photo, tmp_path / output)
    assert done.returncode == 2 and not (tmp_path / output).exists()
    assert all(words in done.stderr for words in told), done.stderr
    assert "Traceback" not in done.stderr


def test_only_those_are_refused_that_would_be_changed(photo, tmp_path):
    deep = noise(9, 5, 3, np.float32)
    (photo.parent / "deep.tiff").write_bytes(codecs.encode(deep, "TIFF"))
    out = tmp_path / "out"
    done = run("convertto", "--dtype", "float32", photo.parent, out)
    assert done.returncode == 1 and "photo.jpg: JPEG can't hold float32" in done.stderr
    assert [path.name for path in out.iterdir()] == ["deep.tiff"]
    # What came as float is scaled for whom can't hold it, with a note.
    done = run("flip", "--axis", "1", photo.parent / "deep.tiff", tmp_path / "deep.jpg")
    assert done.returncode == 0 and "scaled to uint8" in done.stderr


def test_planar_results_and_back(photo, tmp_path):
    planes, back = tmp_path / "planes.npy", tmp_path / "back.png"
    assert run("reformat", "--layout", "planar", photo, planes).returncode == 0
    assert np.array_equal(load(planes), pixels_of(photo).transpose(2, 0, 1))
    assert run("reformat", "--layout", "interleaved", planes, back).returncode == 0
    assert np.array_equal(pixels_of(back), pixels_of(photo))
    done = run("flip", "--axis", "1", planes, tmp_path / "never.npy")
    assert done.returncode != 0 and "interleaved first" in done.stderr
    done = run("reformat", "--layout", "planar", planes, tmp_path / "never.png")
    assert done.returncode == 2 and "--format npy" in done.stderr


def test_layouts_in_one_folder(tmp_path):
    source, out = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    arrays = {f"{n}.npy": noise(9 + n, 6, 3, np.float32) for n in range(6)}
    for n, (name, array) in enumerate(arrays.items()):
        np.save(source / name, array.transpose(2, 0, 1) if n % 2 else array)
    assert run("reformat", "--layout", "interleaved", source, out).returncode == 0
    for name, array in arrays.items():
        assert np.array_equal(load(out / name), array)


def test_dry_run_check_tar_pipes_and_reports(photo, tmp_path):
    step = ("run", "normalize | reformat --layout planar", photo.parent)
    out, report = tmp_path / "out", tmp_path / "report.json"
    named = ("--format", "npy")
    plan = json.loads(run(*step, out, *named, "--dry-run").stdout)
    assert "photo.npy" in json.dumps(plan) and not out.exists()
    assert run(*step, out, *named, "--report", report).returncode == 0
    row = json.loads(report.read_text())["images"][0]
    file = out / "photo.npy"
    assert row["bytes_out"] == file.stat().st_size
    assert run(*step, out, *named, "--report", tmp_path / "r.html", "--overwrite").returncode == 0
    assert run(*step, out, *named, "--check").returncode == 0
    changed = load(file)
    changed[1, 4, 7] += 1
    np.save(file, changed)
    done = run(*step, out, *named, "--check")
    assert done.returncode == 1 and "differs in 1 of 253 pixels" in done.stderr
    assert "x=7, y=4" in done.stderr
    command = [sys.executable, "-m", "cvcli", *map(str, step), "-", *named]
    stream = subprocess.run(command, capture_output=True, timeout=100).stdout
    with tarfile.open(fileobj=io.BytesIO(stream)) as tar:
        member = tar.extractfile(tar.getmembers()[0])
        changed[1, 4, 7] -= 1
        assert np.allclose(np.load(io.BytesIO(member.read())), changed)


def test_cut_file_fails_alone(photo, tmp_path):
    data = file_of(noise(9, 5, 3))
    (photo.parent / "cut.npy").write_bytes(data[:-1])
    (photo.parent / "whole.npy").write_bytes(data)
    out = tmp_path / "out"
    done = run("invert", photo.parent, out)
    assert done.returncode == 1 and "cut.npy: truncated NPY data" in done.stderr
    assert np.array_equal(load(out / "whole.npy"), 255 - decoded(data))


def test_long_lists_of_choices_stand_in_the_text():
    shown = run("cvtcolor", "--help").stdout
    assert "|bgr2gray" not in shown and "CODE" in shown and "rgb2hsv_full," in shown
    assert "planar|interleaved" in run("reformat", "--help").stdout
