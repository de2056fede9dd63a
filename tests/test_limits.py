"""When an image and a run fail, what limits hold, and the exit codes."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import numpy as np
import pytest
import within
from conftest import noise
from PIL import Image
from test_cli import (
    FLIP,
    MODULE,
    contents,
    environment,
    files_in,
    folder_of,
    load,
    messages,
    peak_mib,
    save,
)
from test_run import heed_interrupts

import cvcli.codecs as codecs
from cvcli.cli.app import run_app
from cvcli.errors import ImageError


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder_of(tmp_path / "in", "a.png", "b.png", "c.png")
    return tmp_path


def smooth(format, **options):
    """A file whose pixels are blocks, so that rows that are there can be told."""
    file = io.BytesIO()
    pixels = noise((20, 25, 3), "uint8").repeat(8, 0).repeat(8, 1)
    Image.fromarray(pixels).save(file, format, **options)
    return file.getvalue()


def cvcli(*words):
    """Run the command, whatever it ends with."""
    return within.cvcli(*words, code=None)


# What an image fails on

LEVELS = ["none", "truncated", "error", "warning"]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("format", ["jpg", "png"])
def test_truncated_files_by_level(here, format, level):
    whole = smooth({"jpg": "JPEG", "png": "PNG"}[format])
    Path("bad").mkdir(), Path("ref").mkdir()
    Path(f"ref/half.{format}").write_bytes(whole)
    Path(f"bad/half.{format}").write_bytes(whole[: len(whole) // 2])
    Path(f"bad/end.{format}").write_bytes(whole[:-2])
    done = cvcli("flip", "--axis", "1", "--fail-on", level, "--format", "png", "bad", "out")
    if level != "none":
        assert done.returncode == 1 and not Path("out").exists()
        assert len(messages(done)) == 2 and done.stderr.count(": truncated") == 2
        assert "tip: --fail-on none keeps what there is of it" in done.stderr
        return
    assert done.returncode == 0
    assert done.stderr.count("what there is of it was kept") == 2
    wanted = load(f"ref/half.{format}")[:, ::-1]
    assert np.array_equal(load("out/end.png"), wanted)
    assert np.array_equal(load("out/half.png")[:40], wanted[:40])
    assert not np.array_equal(load("out/half.png"), wanted)


def test_corrupt_files_by_level(here):
    data = bytearray(Path("in/b.png").read_bytes())
    data[len(data) // 2] ^= 1  # the check sum of the pixels is wrong now
    Path("in/b.png").write_bytes(bytes(data))
    codes = {}
    for level in LEVELS:
        codes[level] = cvcli(*FLIP, "-q", "--fail-on", level, "in", f"out-{level}").returncode
    assert codes == {"none": 0, "truncated": 0, "error": 1, "warning": 1}
    assert files_in(here / "out-error") == ["a.png", "c.png"]


def test_what_can_not_be_read_at_all_fails_on_every_level(here):
    Path("in/text.png").write_bytes(b"hello, I am text")
    Path("in/head.png").write_bytes(Path("in/a.png").read_bytes()[:20])
    lzw = smooth("TIFF", compression="tiff_lzw")  # which has its directory at the end
    Path("in/cut.tif").write_bytes(lzw[:-500])
    done = cvcli(*FLIP, "-q", "--fail-on", "none", "in", "out")
    assert done.returncode == 1 and len(messages(done)) == 3
    assert files_in(here / "out") == ["a.png", "b.png", "c.png"]


def test_a_warning_can_be_made_a_failure(here):
    Image.fromarray(noise((8, 9, 4), "uint8")).save("in/clear.png")
    report = ["--report", "r.json", "--format", "jpg"]
    assert cvcli(*FLIP, *report, "in", "out").returncode == 0
    notes = json.loads(Path("r.json").read_text())["images"][3]["notes"]
    done = cvcli(*FLIP, "-q", "--fail-on", "warning", "--format", "jpg", "in", "strict")
    assert notes and done.returncode == 1
    assert files_in(here / "strict") == ["a.jpg", "b.jpg", "c.jpg"]
    for note in notes:
        assert note in done.stderr


@pytest.mark.parametrize("interlaced", [False, True])
@pytest.mark.parametrize("kind", ["L", "RGB", "RGBA", "P", "1", "I;16"])
def test_every_truncation_of_a_png_can_be_read_as_far_as_it_goes(kind, interlaced):
    pixels = Image.fromarray(noise((9, 11, 3), "uint8"))
    image = (
        Image.fromarray(noise((9, 11, 1), "uint16")[:, :, 0])
        if kind == "I;16"
        else pixels.convert(kind)
    )
    file = io.BytesIO()
    image.save(file, "PNG")
    data = file.getvalue()
    if interlaced:
        data = interlaced_png(data)
    header = codecs.probe(data)
    whole = np.empty(header.spec.shape, header.spec.dtype)
    codecs.decode(data, header, whole)
    for size in range(8, len(data), 3):
        out = np.empty_like(whole)
        codecs.salvage(data[:size], header, out)
    assert np.array_equal(out, whole)  # the last one lacks nothing but the end


def interlaced_png(data):
    """The same picture in seven passes, written by OpenCV's or Pillow's like is not possible."""
    import struct
    import zlib

    width, height, depth, colour = struct.unpack(">IIBB", data[16:26])
    at = data.index(b"IDAT")
    size = int.from_bytes(data[at - 4 : at], "big")
    raw = zlib.decompress(data[at + 4 : at + 4 + size])
    # Only its length matters here: the filters of rows are kept to none.
    channels = {0: 1, 2: 3, 3: 1, 6: 4}[colour]
    passes = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2)]
    rows = b""
    for x, y, dx, dy in [*passes, (0, 1, 1, 2)]:
        columns = len(range(x, width, dx))
        for _ in range(y, height, dy):
            length = (columns * channels * depth + 7) // 8
            rows += b"\0" + raw[1 : 1 + length].ljust(length, b"\x55") if columns else b""
    head = data[12:28] + b"\1"
    chunks = [head, b"IDAT" + zlib.compress(rows), b"IEND"]
    if b"PLTE" in data:
        start = data.index(b"PLTE")
        size = int.from_bytes(data[start - 4 : start], "big")
        chunks.insert(1, data[start : start + 4 + size])
    pieces = [
        struct.pack(">I", len(one) - 4) + one + struct.pack(">I", zlib.crc32(one)) for one in chunks
    ]
    return data[:8] + b"".join(pieces)


# When a run stops


def test_so_many_failures_end_a_run(here):
    for number in range(6):
        Path(f"in/a{number}.png").write_bytes(b"no image at all")
    done = cvcli(*FLIP, "-q", "-j", "1", "--max-errors", "3", "in", "out")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "cvcli: stopped after 3 failures, 5 of 9 images were not done"
    )
    assert cvcli(*FLIP, "-q", "--max-errors", "7", "in", "out2").returncode == 1
    assert files_in(here / "out2") == ["a.png", "b.png", "c.png"]


def test_failures_are_listed_again_at_the_end(here):
    Path("in/0bad.png").write_bytes(b"")
    lines = cvcli(*FLIP, "-v", "-j", "1", "in", "out").stderr.splitlines()
    assert "failed: in/0bad.png: empty file" in lines
    assert lines[-1] == "cvcli: in/0bad.png: empty file"


# Memory


def test_images_wait_until_there_is_memory_for_them(here):
    pixels = np.resize(noise((10, 2000, 3), "uint8"), (1000, 2000, 3))  # 6 MB, and 6 after
    first = save(here / "big" / "0.png", pixels, compress_level=1)
    for number in range(1, 12):
        os.link(first, f"big/{number}.png")
    words = [*FLIP, "-q", "-j", "8"]
    tight, code = peak_mib(*words, "--max-memory", "13M", "big", "one")
    assert code == 0
    loose, code = peak_mib(*words, "big", "two")
    assert code == 0 and contents(here / "one") == contents(here / "two")
    assert len(files_in(here / "one")) == 12 and tight < loose - 30


def test_an_image_over_the_limit_fails_alone(here):
    save(here / "in" / "big.png", noise((600, 600, 3), "uint8"))
    done = cvcli(*FLIP, "-q", "--max-memory", "1M", "in", "out")
    assert done.returncode == 1 and "tip: raise the limit with --max-memory" in done.stderr
    assert messages(done) == [
        "cvcli: in/big.png: takes 2.2 MB of memory, more than the limit of 1.0 MB"
    ]
    assert files_in(here / "out") == ["a.png", "b.png", "c.png"]


@pytest.mark.parametrize("limit", ["2M", "4M"])
def test_a_limit_of_memory_keeps_the_order_of_a_tar(here, limit):
    for number in range(12):
        size = 300 if number % 3 else 20
        save(here / "mix" / f"{number:02}.png", noise((size, 1000, 3), "uint8"), compress_level=1)
    words = [*FLIP, "-q", "-j", "4", "--max-memory", limit, "mix", "-"]
    done = subprocess.run([*MODULE, *words], env=environment(), capture_output=True, timeout=100)
    assert done.returncode == 0
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        assert archive.getnames() == [f"{number:02}.png" for number in range(12)]


# Exit codes


def test_exit_codes_are_as_documented(here):
    Path("empty").mkdir(), Path("bad.png").write_bytes(b"x")
    for words, code in (
        (["in", "ok"], 0),
        (["in", "bad.png", "some"], 1),
        (["bad.png", "none"], 1),
        (["in", "ok"], 1),  # the outputs exist
        (["in"], 2),
        (["empty", "out"], 66),
        (["gone*.png", "out"], 66),
    ):
        assert run_app([*FLIP, "-q", *words]) == code, words


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_run_in_order(here, number, code):
    first = save(here / "many" / "0000.png", noise((100, 100, 3), "uint8"), compress_level=0)
    for index in range(1, 3000):
        os.link(first, f"many/{index:04}.png")
    process = subprocess.Popen(
        [*MODULE, *FLIP, "-q", "--report", "r.json", "many", "out"],
        env=environment(),
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,
    )
    while not (Path("out").is_dir() and any(Path("out").iterdir())):
        time.sleep(0.002)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1].decode()
    assert process.returncode == code and "interrupted" in said
    done = files_in(here / "out")
    assert all(not name.startswith(".") for name in done)
    assert json.loads(Path("r.json").read_text())["totals"]["images"] == len(done)


# Death


def test_killed_at_any_moment_a_file_in_place_is_the_old_or_the_new_one(here):
    code = "import sys; from cvcli.cli import main; main()"
    for number in range(200):
        pixels = noise((60, 60, 3), "uint8", number)
        save(here / "many" / f"{number:03}.png", pixels, compress_level=0)
    old = contents(here / "many")
    rng = np.random.default_rng(0)
    for _ in range(4):
        words = ["flip", "--axis", "1", "-q", "--in-place", "--backup=.old", "many"]
        process = subprocess.Popen([sys.executable, "-c", code, *words], env=environment())
        while process.poll() is None and not any(
            name.endswith(".old")
            for name in os.listdir("many")  # noqa: PTH208
        ):
            time.sleep(0.001)
        time.sleep(float(rng.uniform(0, 0.03)))
        process.kill()
        process.wait()
        now = contents(here / "many")
        for name, data in old.items():
            kept = now.get(f"{name}.old", data)
            assert kept == data  # the original is there, under one name or the other
            if now[name] != data:
                turned = np.asarray(Image.open(io.BytesIO(data)))[:, ::-1]
                assert np.array_equal(load(here / "many" / name), turned)
        for name in now:  # the next one starts over
            if name.endswith(".old"):
                Path("many", name.removesuffix(".old")).unlink()
                Path("many", name).rename(Path("many", name.removesuffix(".old")))
        assert {k: v for k, v in contents(here / "many").items() if k[0] != "."} == old
    # Left between the two steps, a file is under both names, and the next run goes on with it.
    os.link("many/000.png", "many/000.png.old")
    assert run_app(["invert", "-q", "--in-place", "--backup=.old", "many/000.png"]) == 0
    assert Path("many/000.png.old").read_bytes() == old["000.png"]
    Path("many/000.png.old").unlink()
    assert run_app(["invert", "-q", "--in-place", "many"]) == 0
    assert sorted(contents(here / "many")) == sorted(old)  # nothing temporary is left


def test_an_encoder_that_fails_leaves_the_old_output_alone(here, monkeypatch):
    cvcli(*FLIP, "-q", "in", "out")
    before = contents(here / "out")
    real = codecs.encode_parts

    def encode(image, *rest, **options):
        if image.shape[1] == 31:
            raise ImageError("can't encode PNG: no")
        return real(image, *rest, **options)

    monkeypatch.setattr(codecs, "encode_parts", encode)
    done = cvcli("flip", "--axis", "1", "-q", "--overwrite", "in", "out")
    assert done.returncode == 1 and messages(done) == ["cvcli: in/b.png: can't encode PNG: no"]
    after = contents(here / "out")
    assert after["b.png"] == before["b.png"] and after["a.png"] != before["a.png"]
    assert sorted(after) == sorted(before)


# Progress


def test_a_log_gets_few_lines_and_none_when_quiet(here):
    first = save(here / "many" / "0000.png", noise((16, 16, 3), "uint8"))
    for index in range(1, 1000):
        os.link(first, f"many/{index:04}.png")
    done = cvcli(*FLIP, "many/0*", "out")
    assert len(done.stderr.splitlines()) < 20 and not set(done.stderr) & {"\r", "\x1b"}
    done = cvcli(*FLIP, "--overwrite", "--progress", "always", "many", "out")
    told = [line for line in done.stderr.splitlines() if " of 1000 images, " in line]
    assert 0 < len(told) < 12 and all(line.endswith(" s left") for line in told)
