"""Files that are not what their suffix says: read for what they are, never turned in silence."""

import io
import json
import tarfile
from pathlib import Path

import imagecodecs
import numpy as np
import pytest
from conftest import noise
from PIL import Image
from test_cli import FLIP, load
from test_metadata import opened, run, saved
from within import cvcli

from cvcli import codecs

NOTE = "holds PNG, but its suffix stands for JPEG"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def png(channels=3, dtype="uint8"):
    return bytes(imagecodecs.png_encode(noise((20, 30, channels), dtype)))


def test_the_output_is_what_its_name_says_with_a_note(capfd):
    Path("a.jpg").write_bytes(png())
    run(*FLIP, "a.jpg", "out", "--report", "r.json")
    assert f"note: a.jpg: {NOTE}" in capfd.readouterr().err
    assert opened("out/a.jpg").format == "JPEG"
    assert json.loads(Path("r.json").read_text())["images"][0]["notes"] == [NOTE]
    Path("b.png").write_bytes(saved(Image.fromarray(noise((20, 30, 3), "uint8")), "JPEG"))
    run(*FLIP, "b.png", "out")
    said = capfd.readouterr().err
    assert "b.png: holds JPEG, but its suffix stands for PNG" in said
    assert opened("out/b.png").format == "PNG"


def test_what_more_is_lost_is_told_too(capfd):
    Path("a.jpg").write_bytes(png(4, "uint16"))
    run(*FLIP, "a.jpg", "out")
    said = capfd.readouterr().err
    assert NOTE in said and "alpha" in said and "uint16" in said


@pytest.mark.parametrize("wish", [["--strict"], ["--fail-on", "warning"]])
def test_who_takes_no_loss_gets_no_file(wish, capfd):
    Path("a.jpg").write_bytes(png())
    run(*FLIP, "a.jpg", "out", *wish, code=1)
    assert f"a.jpg: {NOTE}" in capfd.readouterr().err
    assert not Path("out").exists()


def test_in_place_a_file_keeps_its_kind(capfd):
    data = png(4)
    Path("a.jpg").write_bytes(data)
    Path("b.png").write_bytes(data)
    run(*FLIP, "--in-place", "a.jpg", "b.png", code=1)
    said = capfd.readouterr().err
    assert "a.jpg: holds PNG, but its suffix stands for JPEG" in said
    assert "tip: rename it to have it replaced, or name an OUTPUT" in said
    assert Path("a.jpg").read_bytes() == data
    np.testing.assert_array_equal(load(Path("b.png")), noise((20, 30, 4), "uint8")[::-1, ::-1])


def test_in_place_the_suffix_of_the_file_counts_not_that_of_a_link_to_it(capfd):
    Path("real.png").write_bytes(png(4))
    Path("link.jpg").symlink_to("real.png")
    run(*FLIP, "--strict", "--in-place", "link.jpg")
    assert opened("real.png").format == "PNG" and Path("link.jpg").is_symlink()
    np.testing.assert_array_equal(load(Path("real.png")), noise((20, 30, 4), "uint8")[::-1, ::-1])


def test_what_is_asked_for_is_no_surprise():
    Path("a.jpg").write_bytes(png())
    run(*FLIP, "--strict", "a.jpg", "out", "--format", "jpg")
    run(*FLIP, "--strict", "a.jpg", "out", "--name", "{stem}.png")
    run(*FLIP, "--strict", "a.jpg", "b.jpg")
    assert [opened(name).format for name in ("out/a.jpg", "out/a.png", "b.jpg")] == [
        *("JPEG", "PNG", "JPEG")
    ]


def test_no_file_that_is_written_is_taken_for_misnamed():
    """Each suffix that is written stands for what its content is then found to be."""
    pixels = noise((16, 16, 3), "uint8")
    for suffix in sorted(codecs.readable_suffixes()):
        format = codecs.format_for_suffix(suffix)
        if format is None or codecs.encodable(codecs.probe(png()).spec, format):
            continue
        Path(f"in/{suffix[1:]}").mkdir(parents=True)
        Path(f"in/{suffix[1:]}/a{suffix}").write_bytes(codecs.encode(pixels, format))
    run(*FLIP, "-r", "in", "out", "--report", "r.json")
    rows = json.loads(Path("r.json").read_text())["images"]
    assert len(rows) > 20 and not [row for row in rows if "holds" in str(row["notes"])]


def test_a_tar_is_no_other():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        info = tarfile.TarInfo("a.jpg")
        info.size = len(png())
        archive.addfile(info, io.BytesIO(png()))
    done = cvcli(*FLIP, "-", "-", data=file.getvalue())
    assert f"a.jpg: {NOTE}" in done.stderr
    cvcli(*FLIP, "--strict", "-", "-", data=file.getvalue(), code=1)


def test_a_file_of_several_pictures_is_not_replaced_by_one_of_them(capfd):
    image = Image.fromarray(noise((20, 30, 3), "uint8"))
    data = saved(image, "TIFF", save_all=True, append_images=[image])
    Path("a.tif").write_bytes(data)
    run("invert", "a.tif", "--in-place", "--frame", 1, code=2)
    assert "--in-place and --frame: only one of them can be given" in capfd.readouterr().err
    assert Path("a.tif").read_bytes() == data
