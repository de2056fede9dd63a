"""Files of several pictures for a format that holds one: each picture gets a file of its own."""

import io
import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from conftest import noise
from PIL import Image
from test_cli import FLIP, load
from test_frames import animated, frames, pages
from test_metadata import run, saved
from within import cvcli

from cvcli import codecs
from cvcli.batch.files import write_together
from cvcli.batch.pictures import counted
from cvcli.errors import ImageError

NAMES = [f"a-{number:03}" for number in range(4)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(folder="out"):
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*.*"))


def rgb(pixels):
    return pixels[::-1, ::-1, :3]


def gif(name="a.gif"):
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(animated("GIF"))
    return [rgb(frame) for frame in frames(name)[0]]


@pytest.mark.parametrize("format", ["GIF", "WEBP", "PNG", "AVIF", "TIFF"])
@pytest.mark.parametrize("target", ["bmp", "npy", "ppm"])
def test_every_picture_of_every_kind_is_written(format, target):
    images = [Image.fromarray(noise((20, 30, 3), "uint8", n) & 0xC0) for n in range(4)]
    data = animated(format, images)
    Path(f"a.{format.lower()}").write_bytes(data)
    # Nothing is lost, unless by the alpha that Pillow gives its moving WebP files.
    strict = ["--strict"] if format != "WEBP" else []
    words = [f"a.{format.lower()}", "out", "--format", target, "--report", "r.json"]
    run(*FLIP, *strict, *words)
    assert made() == [f"{name}.{target}" for name in NAMES]
    wanted = [rgb(frame) for frame in frames(f"a.{format.lower()}")[0]]
    for name, frame in zip(made(), wanted, strict=True):
        got = np.load(f"out/{name}") if target == "npy" else load(Path("out", name))
        np.testing.assert_array_equal(got[:, :, :3], frame)
    report = json.loads(Path("r.json").read_text())
    assert report["totals"]["images"] == 1 and report["totals"]["outputs"] == 4
    (row,) = report["images"]
    assert row["output"] == row["outputs"][0] == f"out/{NAMES[0]}.{target}"
    assert row["outputs"] == [f"out/{name}" for name in made()]
    assert row["bytes_out"] == sum(Path("out", name).stat().st_size for name in made())


def test_pages_become_pictures_each_of_its_own_kind():
    whole, data = pages()
    Path("a.tif").write_bytes(data)
    run(*FLIP, "a.tif", "out", "--format", "png", "--name", "{stem}-{width}x{height}.{ext}")
    names = ["a-24x16-002.png", "a-26x18-003.png", "a-31x20-000.png", "a-9x12-001.png"]
    assert made() == names
    for name in names:
        page = whole[int(name[-5])]
        got = Image.open(f"out/{name}")
        assert got.mode == page.mode
        shown = [np.asarray(one.convert("RGB") if page.mode == "P" else one) for one in (page, got)]
        np.testing.assert_array_equal(shown[1], shown[0][::-1, ::-1])


def test_a_single_output_is_the_name_of_all():
    wanted = gif()
    run(*FLIP, "a.gif", "new/b.jpg", "--quality", 100)
    assert made("new") == [f"b-{number:03}.jpg" for number in range(4)]
    assert np.abs(load(Path("new/b-002.jpg")).astype(int) - wanted[2]).mean() < 12
    run(*FLIP, "a.gif", "one.bmp", "--frame", 2)
    np.testing.assert_array_equal(load(Path("one.bmp")), wanted[2])


def test_a_file_of_one_picture_keeps_its_plain_name():
    for format in ("GIF", "WEBP", "PNG", "AVIF", "TIFF"):
        image = Image.fromarray(noise((20, 30, 3), "uint8"))
        Path(f"{format}.{format.lower()}").write_bytes(saved(image, format))
    names = [path.name for path in Path().iterdir()]
    run(*FLIP, *names, "out", "--format", "bmp")
    assert made() == sorted(Path(name).with_suffix(".bmp").name for name in names)


def test_a_field_for_the_picture_takes_animations_apart():
    wanted = gif()
    Path("b.png").write_bytes(saved(Image.fromarray(wanted[0]), "PNG"))
    run(*FLIP, "a.gif", "b.png", "out", "--name", "{stem}/{frame:02}.png")
    assert made() == [*(f"a/{number:02}.png" for number in range(4)), "b/00.png"]
    for number in range(4):
        image = Image.open(f"out/a/{number:02}.png")
        assert getattr(image, "n_frames", 1) == 1
        np.testing.assert_array_equal(np.asarray(image.convert("RGB")), wanted[number])
    run(*FLIP, "a.gif", "one", "--frame", 3, "--name", "{stem}_{frame}.{ext}")
    assert made("one") == ["a_3.gif"]


def test_more_than_a_thousand_pictures_sort_by_name():
    first, *rest = (Image.new("L", (2, 2), number % 256) for number in range(1001))
    first.save("a.tif", save_all=True, append_images=rest)
    run(*FLIP, "-q", "a.tif", "out", "--format", "png")
    names = made()
    assert names[0] == "a-0000.png" and names[-1] == "a-1000.png" and len(names) == 1001
    assert load(Path("out/a-0999.png")).max() == 999 % 256


def test_outputs_are_known_before_anything_is_read(capfd):
    gif("in/a.gif")
    Path("in/b.jpg").write_bytes(saved(Image.new("RGB", (9, 9)), "JPEG"))
    run(*FLIP, "--dry-run", "in", "out", "--format", "jpg")
    plan = json.loads(capfd.readouterr().out)
    assert plan["images"][0]["outputs"] == [f"out/{name}.jpg" for name in NAMES]
    assert plan["images"][1]["output"] == "out/b.jpg" and plan["images"][1]["outputs"] is None
    assert not Path("out").exists()


def test_a_collision_with_a_numbered_file_is_refused_as_a_whole(capfd):
    gif("in/a.gif")
    Path("in/A-002.jpg").write_bytes(saved(Image.new("RGB", (9, 9)), "JPEG"))
    run(*FLIP, "in", "out", "--format", "jpg", code=2)
    assert "two inputs would write it (in/A-002.jpg, in/a.gif)" in capfd.readouterr().err
    assert not Path("out").exists()
    run(*FLIP, "in/a.gif", "in", "--format", "npy")
    words = ["--name", "{stem}-{frame:03}.npy", "--overwrite"]
    run(*FLIP, "in/a.gif", "in/a-001.npy", "in", *words, code=2)
    assert "in/a-001.npy: input would be overwritten" in capfd.readouterr().err


def test_existing_outputs_count_one_by_one(capfd):
    gif()
    words = ("a.gif", "out", "--format", "bmp")
    run(*FLIP, *words)
    before = {name: Path("out", name).stat().st_mtime_ns for name in made()}
    run(*FLIP, *words, code=1)
    assert "out/a-000.bmp: output exists" in capfd.readouterr().err
    run(*FLIP, *words, "--skip-existing")
    run(*FLIP, *words, "--check")
    Path("out/a-002.bmp").unlink()
    run(*FLIP, *words, "--check", code=1)
    assert "out/a-002.bmp: output is missing" in capfd.readouterr().err
    run(*FLIP, *words, code=1)
    run(*FLIP, *words, "--skip-existing")
    after = {name: Path("out", name).stat().st_mtime_ns for name in made()}
    assert after.keys() == before.keys()
    assert [name for name in after if after[name] != before[name]] == ["a-002.bmp"]
    changed = Image.open("out/a-003.bmp")
    changed.putpixel((3, 1), (1, 2, 3))
    changed.save("out/a-003.bmp")
    run(*FLIP, *words, "--check", code=1)
    assert "out/a-003.bmp: differs in 1 of" in capfd.readouterr().err
    os.utime("out/a-001.bmp", (1, 1))
    run(*FLIP, *words, "--if-newer")
    run(*FLIP, *words, "--check")


@pytest.mark.parametrize("template", [None, "{stem}/{frame:02}.bmp", "{frame}-of-{stem}12.bmp"])
def test_files_that_a_longer_run_left_are_told_of(template, capfd):
    images = [Image.fromarray(noise((20, 30, 3), "uint8", n) & 0xC0) for n in range(12)]
    words = ["a.gif", "out", "--format", "bmp"] if template is None else ["a.gif", "out"]
    words += [] if template is None else ["--name", template]
    Path("a.gif").write_bytes(saved(images[0], "GIF", save_all=True, append_images=images[1:]))
    run(*FLIP, *words)
    assert len(made()) == 12
    for kept in (11, 3):
        few = images[:kept]
        Path("a.gif").write_bytes(saved(few[0], "GIF", save_all=True, append_images=few[1:]))
        before = {name: Path("out", name).read_bytes() for name in made()}
        capfd.readouterr()
        run(*FLIP, "--fail-on", "warning", "--overwrite", *words, code=1)
        assert {name: Path("out", name).read_bytes() for name in made()} == before
        run(*FLIP, "--overwrite", *words)
        number = "1 file" if kept == 11 else "9 files"
        assert f"note: a.gif: {number} of a longer run left behind" in capfd.readouterr().err
        run(*FLIP, "--check", *words)
        assert f"note: a.gif: {number} of a longer run left behind" in capfd.readouterr().err
        assert len(made()) == 12
    run(*FLIP, "a.gif", "fresh", *words[2:])
    assert "note" not in capfd.readouterr().err


def test_names_that_only_look_like_numbers_are_no_leftovers(capfd):
    gif()
    Path("out").mkdir()
    for name in ("a-4.bmp", "a-0004.bmp", "a-005.bmp", "a-004.png", "b-004.bmp"):
        Path("out", name).write_bytes(b"mine")
    run(*FLIP, "a.gif", "out", "--format", "bmp", "--fail-on", "warning")
    assert "note" not in capfd.readouterr().err
    gif("in/a.gif")
    Path("a-004.bmp").write_bytes(b"not beside the members of a tar")
    assert "note" not in cvcli(*FLIP, "in", "-", "--format", "bmp").stderr


def test_pictures_go_into_a_tar_in_order_and_come_out_of_one():
    gif("in/a.gif")
    Path("in/b.bmp").write_bytes(saved(Image.new("RGB", (9, 9)), "BMP"))
    done = cvcli(*FLIP, "-q", "in", "-", "--format", "bmp")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        assert archive.getnames() == [*(f"{name}.bmp" for name in NAMES), "b.bmp"]
    with tarfile.open("in.tar", "w") as archive:
        archive.add("in/a.gif", "deep/a.gif")
        archive.add("in/b.bmp", "deep/b.bmp")
    cvcli(*FLIP, "-q", "-", "out", "--format", "npy", data=Path("in.tar").read_bytes())
    assert made() == [*(f"deep/{name}.npy" for name in NAMES), "deep/b.npy"]


def test_a_pipe_takes_one_picture():
    wanted = gif()
    data = Path("a.gif").read_bytes()
    done = cvcli(*FLIP, "-", "-", "--format", "bmp", data=data, code=1)
    assert not done.stdout
    assert "-: its 4 pictures would be as many files, and - takes one" in done.stderr
    done = cvcli(*FLIP, "-", "-", "--format", "bmp", "--frame", "1", data=data)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(done.stdout))), wanted[1])
    cvcli(*FLIP, "-q", "-", "out", "--format", "bmp", data=data)
    assert made() == [f"stdin-{number:03}.bmp" for number in range(4)]


def test_one_that_fails_takes_all_of_its_file_with_it(capfd):
    large, small = Image.new("RGB", (80, 70)), Image.new("L", (10, 8))
    large.save("a.tif", save_all=True, append_images=[small])
    run("crop", "--width", 50, "--height", 40, "a.tif", "out", "--format", "png", code=1)
    assert "a.tif: frame 1: crop: the rectangle" in capfd.readouterr().err
    assert not Path("out").exists()


def test_another_suffix_is_no_way_to_lose_pictures(capfd):
    gif("a.jpg")
    run(*FLIP, "a.jpg", "out", code=1)
    said = capfd.readouterr().err
    assert "a.jpg: is a GIF of 4 pictures by another suffix, and JPEG holds one" in said
    before = Path("a.jpg").read_bytes()
    run(*FLIP, "--in-place", "a.jpg", code=1)
    assert Path("a.jpg").read_bytes() == before
    gif("b.png")
    run(*FLIP, "b.png", "out", "--format", "bmp")
    assert made() == [f"b-{number:03}.bmp" for number in range(4)]
    gif("c")
    run(*FLIP, "c", "none", "--format", "bmp")
    assert len(made("none")) == 4


def test_other_pictures_of_a_jpeg_are_noted_and_come_when_asked_for(capfd):
    whole = [Image.fromarray(noise((32, 48, 3), "uint8", n)) for n in range(3)]
    Path("a.jpg").write_bytes(saved(whole[0], "MPO", save_all=True, append_images=whole[1:]))
    run(*FLIP, "a.jpg", "out")
    assert "note: a.jpg: only the first of 3 frames is kept" in capfd.readouterr().err
    assert made() == ["a.jpg"]
    run(*FLIP, "--strict", "a.jpg", "strict", code=1)
    run(*FLIP, "--strict", "a.jpg", "each", "--name", "{stem}-{frame}.{ext}")
    assert made("each") == ["a-0.jpg", "a-1.jpg", "a-2.jpg"]


def test_files_are_put_in_place_together_or_not_at_all(here):
    (here / "b").write_bytes(b"old")
    names = [here / "a", here / "b", here / "c"]
    with pytest.raises(ImageError, match="b: output exists"):
        write_together([(name, b"new") for name in names], overwrite=False)
    assert [path.name for path in here.iterdir()] == ["b"]
    (here / "c").mkdir()
    with pytest.raises(ImageError, match="c: "):
        write_together([(name, b"new") for name in names], overwrite=True)
    assert sorted(path.name for path in here.iterdir()) == ["b", "c"]
    (here / "c").rmdir()
    write_together([(name, b"new") for name in names], overwrite=True)
    assert [name.read_bytes() for name in names] == [b"new"] * 3


def test_counting_agrees_with_reading(here):
    kinds = {f"{name}.x": animated(name) for name in ("GIF", "WEBP", "PNG", "AVIF", "TIFF")}
    kinds |= {
        f"one-{name}.x": saved(Image.new("RGB", (9, 9)), name)
        for name in ("GIF", "WEBP", "PNG", "AVIF", "TIFF", "JPEG", "BMP")
    }
    kinds["deep.x"] = pages()[1]
    kinds["big.x"] = saved(Image.new("L", (9, 9)), "TIFF", big_tiff=True)
    cut = {
        f"cut-{name}": data[: len(data) * part // 5]
        for name, data in kinds.items()
        for part in (1, 3)
    }
    for name, data in (kinds | cut).items():
        Path(name).write_bytes(data)
    names = [*kinds, *cut]
    for name, count in zip(names, counted(names), strict=True):
        try:
            held = codecs.probe(Path(name).read_bytes()).frames
        except ImageError:
            held = count
        assert count == held, name
    assert counted(["missing"]) == [1]


def test_files_of_this_run_are_no_leftovers(capfd):
    images = [Image.new("RGB", (9, 7), (n * 60, 0, 0)) for n in range(3)]
    Path("in").mkdir()
    images[0].save("in/a.gif", save_all=True, append_images=images[1:])
    for number in (3, 4):
        images[0].save(f"in/a-{number:03}.jpg")
    for words in ((), ("--overwrite", "--fail-on", "warning")):
        run("invert", "in", "out", "--format", "jpg", *words)
        assert "longer run" not in capfd.readouterr().err
    assert len(list(Path("out").iterdir())) == 5
