"""Broken files of several pictures: the whole ones are kept if asked, and found one by one."""

import json
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from conftest import noise
from PIL import Image
from test_cli import FLIP, load
from test_frames import animated
from test_metadata import run, saved

from cvcli import codecs
from cvcli.codecs import _front, _ifd
from cvcli.errors import ImageError

IMAGES = [Image.fromarray(noise((20, 30, 3), "uint8", n) & 0xC0) for n in range(4)]
DEEP = noise((4, 11, 9, 3), "uint16")
FILES = {
    "gif": animated("GIF", IMAGES),
    "webp": animated("WEBP", IMAGES),
    "png": animated("PNG", IMAGES),
    "deep.png": bytes(imagecodecs.apng_encode(DEEP, delay=90)),
    "tif": animated("TIFF", IMAGES),
    # Each directory behind its strips, and the next one far away.
    "joined.tif": codecs.encode_all(
        [np.asarray(image) for image in IMAGES],
        "TIFF",
        sources=[codecs.probe(saved(image, "PNG")) for image in IMAGES],
        each=[codecs.Metadata()] * 4,
        durations=[0.0] * 4,
    ),
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def pictures(data, count=None):
    shown = []
    for frame in codecs.frames(data, codecs.probe(data), count):
        shown.append(np.zeros(frame.header.spec.shape, frame.header.spec.dtype))
        frame.read(shown[-1])
    return shown


def first_end(data):
    """The shortest file of which the first picture can be had."""
    for size in range(40, len(data)):
        try:
            pictures(data[:size], 1)
        except ImageError:
            continue
        return size
    raise AssertionError("no picture")


@pytest.mark.parametrize("name", FILES)
def test_the_first_picture_of_a_file_cut_behind_it_is_whole(name):
    data = FILES[name]
    want, end = pictures(data)[0], first_end(data)
    assert end < len(data) * 0.4
    for size in range(end, len(data), 7):
        (got,) = pictures(data[:size], 1)
        np.testing.assert_array_equal(got, want, f"{size} bytes")
    for size in (end, (end + len(data)) // 2, len(data) - 20):
        Path(f"a{size}.{name}").write_bytes(data[:size])
        run("flip", "--axis", 0, "--fail-on", "warning", f"a{size}.{name}", "b.npy", "--frame", 0)
        np.testing.assert_array_equal(np.load("b.npy")[::-1], want)
        Path("b.npy").unlink()


@pytest.mark.parametrize("name", FILES)
def test_whole_pictures_in_front_of_the_break_are_kept(name, capfd):
    data, suffix = FILES[name], name.split(".")[-1]
    want, end = pictures(data), first_end(data)
    seen = set()
    for size in range(end, len(data) - 20, max(1, len(data) // 12)):
        source, target = f"a{size}.{suffix}", f"b{size}.{suffix}"
        Path(source).write_bytes(data[:size])
        run("flip", "--axis", 0, source, target, code=1)
        said = capfd.readouterr().err
        assert f"truncated {codecs.probe(data).format} data" in said, size
        assert "tip: --fail-on none keeps what there is of it" in said
        assert not Path(target).exists()
        quality = ["--quality", 100] if suffix == "webp" else []
        run("flip", "--axis", 0, source, target, "--fail-on", "none", *quality)
        said = capfd.readouterr().err
        got = pictures(Path(target).read_bytes())
        seen.add(len(got))
        kept = "picture in front was" if len(got) == 1 else f"{len(got)} pictures in front were"
        alone = len(got) == 1 and "; what there is of it was kept" in said
        assert alone or f"data; the {kept} kept" in said, size
        for one, other in zip(got, want, strict=False):
            np.testing.assert_array_equal(one[..., :3][::-1], other[..., :3])
    assert seen == {1, 2, 3} or (seen == {1, 2, 3, 4} and name in ("deep.png", "joined.tif")), seen


def test_numbered_files_are_as_many_as_there_are_pictures():
    for name, data in FILES.items():
        Path(f"in/{name[:2]}{len(name)}").mkdir(parents=True)
        Path(f"in/{name[:2]}{len(name)}/a.{name[-3:].lstrip('b')}").write_bytes(data)
    suffix = {path.parent.name: path for path in Path("in").rglob("a.*")}
    for path in suffix.values():
        data = path.read_bytes()
        path.write_bytes(data[: len(data) * 6 // 10])
    words = ("-r", "in", "out", "--format", "npy", "--fail-on", "none", "--report", "r.json")
    run(*FLIP, *words)
    report = json.loads(Path("r.json").read_text())
    for row in report["images"]:
        written = sorted(str(path) for path in Path(row["output"]).parent.iterdir())
        assert row["outputs"] == written and 1 < len(written) < 4
        assert row["output"] == written[0]
        (note,) = row["notes"]
        assert note.endswith(f"data; the {len(written)} pictures in front were kept")
        wanted = pictures(Path(row["input"]).read_bytes(), len(written))
        for name, want in zip(written, wanted, strict=True):
            np.testing.assert_array_equal(np.load(name)[::-1, ::-1], want)
    assert report["totals"]["outputs"] == sum(len(row["outputs"]) for row in report["images"])


def test_broken_files_wait_for_memory_and_names_of_sizes_are_known_as_ever():
    large = [Image.fromarray(noise((200, 300, 3), "uint8", n) & 0xC0) for n in range(4)]
    for number, format in enumerate(("GIF", "PNG", "TIFF", "WEBP") * 3):
        data = animated(format, [image.copy() for image in large])
        Path(f"a{number}.{format.lower()}").write_bytes(data[: len(data) * 6 // 10])
    names = sorted(str(path) for path in Path().iterdir())
    words = ["--name", "{stem}-{width}x{height}.npy", "--fail-on", "none"]
    run(*FLIP, *names, "out", *words, "--max-memory", "2MB", "--threads", 4)
    for name in names:
        for number in range(2):
            got = np.load(f"out/{Path(name).stem}-300x200-{number:03}.npy")
            np.testing.assert_array_equal(
                got[::-1, ::-1, :3], pictures(Path(name).read_bytes(), 2)[number][..., :3]
            )


def test_pages_that_are_cut_off_whole_are_missed(capfd):
    """Even where what is left is a sound file but for a link that leads out of it."""
    data = FILES["tif"]
    for size in range(len(data) - 1, 0, -1):
        header = codecs.probe(data[:size])
        if header.frames == 1:
            break
    Path("a.tif").write_bytes(data[:size])
    run(*FLIP, "a.tif", "b.tif", code=1)
    assert "a.tif: truncated TIFF data" in capfd.readouterr().err
    run(*FLIP, "a.tif", "b.tif", "--frame", 0)
    run(*FLIP, "a.tif", "c.tif", "--fail-on", "none")
    assert "what there is of it was kept" in capfd.readouterr().err
    for name in "bc":
        want = np.asarray(IMAGES[0])[::-1, ::-1]
        np.testing.assert_array_equal(load(Path(f"{name}.tif")), want)


def test_one_that_is_broken_in_the_middle_keeps_those_before_it(capfd):
    def at(name, number):
        """A place in the pixels of a picture."""
        if name == "tif":
            with Image.open("whole.tif") as image:
                image.seek(number)
                return image.tag_v2[273][0]
        return FILES[name].find(b"fdAT", FILES[name].find(b"fdAT") + 4) + 20

    copies = [image.copy() for image in IMAGES]
    compressed = animated("TIFF", copies, compression="tiff_lzw")
    for name, data in (("png", FILES["png"]), ("tif", compressed)):
        Path(f"whole.{name}").write_bytes(data)
        broken = bytearray(data)
        broken[at(name, 2) : at(name, 2) + 12] = b"\xff" * 12
        Path(f"a.{name}").write_bytes(bytes(broken))
        run(*FLIP, f"a.{name}", f"b.{name}", code=1)
        run(*FLIP, f"a.{name}", f"b.{name}", "--fail-on", "none")
        assert "the 2 pictures in front were kept" in capfd.readouterr().err
        got = pictures(Path(f"b.{name}").read_bytes())
        assert len(got) == 2
        np.testing.assert_array_equal(got[1][::-1, ::-1, :3], np.asarray(IMAGES[1]))
        run(*FLIP, f"a.{name}", f"c.{name}", "--frame", 1)
        run(*FLIP, f"a.{name}", f"d.{name}", "--frame", 2, "--fail-on", "none", code=1)


def test_of_a_first_picture_that_is_broken_what_there_is_counts(capfd):
    for name in ("gif", "png", "tif"):
        data = FILES[name]
        end = first_end(data)
        Path(f"a.{name}").write_bytes(data[: end * 8 // 10])
        run(*FLIP, f"a.{name}", f"b.{name}", "--fail-on", "none")
        said = capfd.readouterr().err
        assert "what there is of it was kept" in said, name
        (got,) = pictures(Path(f"b.{name}").read_bytes())
        whole = np.asarray(IMAGES[0])
        same = (got[::-1, ::-1, :3] == whole).all(axis=(1, 2))
        assert 0.3 < same.mean() < 1, name


def test_animations_of_avif_are_read_whole_or_not_at_all(capfd):
    data = animated("AVIF", IMAGES)
    Path("a.avif").write_bytes(data[: len(data) * 9 // 10])
    run(*FLIP, "a.avif", "b.avif", "--fail-on", "none", code=1)
    said = capfd.readouterr().err
    assert "tip" not in said and "a.avif: truncated" in said


def test_more_pixels_than_the_limit_are_not_read_to_find_a_break(capfd):
    """Which would take what the limit is there to refuse."""
    large = Image.new("1", (20_000, 20_000))
    small = Image.new("1", (9, 9))
    Path("a.tif").write_bytes(
        saved(small, "TIFF", save_all=True, append_images=[large], compression="group4")
    )
    words = ("a.tif", "b.tif", "--fail-on", "none", "--max-pixels", 1_000_000)
    run(*FLIP, *words, code=1)
    assert "more than the limit of 1000000 pixels" in capfd.readouterr().err


def test_check_sums_are_not_made_anew():
    """Else a broken frame in front of a cut would be taken for a whole one."""
    data = bytearray(FILES["png"])
    at = data.find(b"fdAT") + 10
    data[at] ^= 1
    cut = bytes(data[: data.find(b"fdAT", at) + 12])
    count, error = codecs.whole(cut, codecs.probe(cut), 4, 1 << 30)
    assert count == 1 and error is not None


def test_a_link_that_leads_into_pixels_spoils_none():
    """What it leads to is no directory, and nothing may be changed behind it."""
    data = FILES["tif"]
    form = _ifd.layout(data)
    places = _ifd.chain(data, form)
    after = places[2].to_bytes(4, "little")
    at = data.index(after, places[1])
    for wrong in set(range(8, len(data), 3)) - {*places}:
        broken = data[:at] + wrong.to_bytes(4, "little") + data[at + 4 :]
        assert _ifd.links(broken, form) == (places[:2], True), wrong
        whole = _front.front(broken, "TIFF", 2)
        assert whole == data[:at] + bytes(4) + data[at + 4 :], wrong
