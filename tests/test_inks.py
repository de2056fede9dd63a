"""JPEG stays progressive, and CMYK stays CMYK where pixels are only moved."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, noise
from PIL import Image
from test_codecs_kept import cmyk_profile
from test_lossless import jpeg
from test_metadata import opened, run, saved

from cvcli import codecs

PHOTO = Image.open(ROOT / "sample_images" / "rocket.jpg").convert("RGB").resize((80, 60))
WIDE = [min(255, 3 + place) for place in range(64)]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def notes(path="r.json"):
    return json.loads(Path(path).read_text())["images"][0]["notes"]


@pytest.mark.parametrize("mode", ("L", "RGB"))
@pytest.mark.parametrize("subsampling", (0, 1, 2))
@pytest.mark.parametrize("tables", (None, [WIDE, WIDE]))
def test_progressive_stays_progressive(mode, subsampling, tables):
    how = {"quality": 77} if tables is None else {"qtables": tables}
    data = saved(PHOTO.convert(mode), "JPEG", progressive=True, subsampling=subsampling, **how)
    Path("a.jpg").write_bytes(data)
    run("flip", "--axis", "-1", "a.jpg", "b.jpg")
    before, after = (codecs.probe(Path(n).read_bytes()).coding for n in ("a.jpg", "b.jpg"))
    assert before == after and after.progressive
    # The same as Pillow makes of the same pixels.
    turned = np.ascontiguousarray(np.asarray(opened("a.jpg"))[::-1, ::-1])
    wanted = saved(
        Image.fromarray(turned), "JPEG", progressive=True, subsampling=subsampling, **how
    )
    assert (np.asarray(opened("b.jpg")) == np.asarray(Image.open(io.BytesIO(wanted)))).all()
    run("flip", "--axis", "-1", "a.jpg", "c.jpg", "--quality", "50")
    assert codecs.probe(Path("c.jpg").read_bytes()).coding.level == 50
    assert opened("c.jpg").info["progressive"] == 1


def test_baseline_stays_baseline_and_others_become_it():
    PHOTO.save("a.jpg")
    PHOTO.save("a.png")
    for name in ("a.jpg", "a.png"):
        run("flip", "--axis", "1", name, "b.jpg", "--overwrite")
        assert "progressive" not in opened("b.jpg").info


@pytest.mark.parametrize(
    "words", ["flip --axis -1", "rotate --angle 90 | crop --width 9 --height 7"]
)
@pytest.mark.parametrize("adobe", (True, False))
def test_cmyk_jpeg_that_only_moves_stays_cmyk(words, adobe):
    # Blue and no black: whoever inverts it by mistake sees it at once.
    inks = np.full((48, 64, 4), (250, 200, 10, 0), np.uint8)
    inks[:20, :30] = (0, 30, 240, 90)
    data = saved(Image.fromarray(inks, "CMYK"), "JPEG", quality=95, subsampling=0)
    if not adobe:
        at = data.index(b"\xff\xee")
        data = data[:at] + data[at + 16 :]
    Path("a.jpg").write_bytes(data)
    run("run", words, "a.jpg", "b.jpg", "--strict", "--report", "r.json")
    got = np.asarray(opened("b.jpg")).astype(int)
    source = np.asarray(opened("a.jpg")).astype(int)
    turned = source[::-1, ::-1] if "flip" in words else np.rot90(source)[:7, :9]
    assert opened("b.jpg").mode == "CMYK" and notes() == []
    assert np.abs(got - turned).max() <= 4
    assert codecs.probe(Path("b.jpg").read_bytes()).coding.level == 95


def test_cmyk_tiff_that_only_moves_stays_cmyk_to_the_bit():
    inks = noise((20, 31, 4), "uint8")
    profile = cmyk_profile()
    Image.fromarray(inks, "CMYK").save("a.tif", icc_profile=profile, compression="tiff_deflate")
    run("flip", "--axis", "1", "a.tif", "b.tif", "--strict")
    image = opened("b.tif")
    assert image.mode == "CMYK" and (np.asarray(image) == inks[:, ::-1]).all()
    assert (
        image.info["icc_profile"] == profile and image.info["compression"] == "tiff_adobe_deflate"
    )


@pytest.mark.parametrize(
    ("words", "target"),
    [
        (["invert"], "b.jpg"),
        (["resize", "50%"], "b.jpg"),
        (["pad", "--top", "2"], "b.jpg"),
        (["flip", "--axis", "1"], "b.png"),
        (["flip", "--axis", "1"], "b.tif"),
        (["flip", "--axis", "1", "--to-srgb"], "b.jpg"),
    ],
)
def test_whatever_else_becomes_rgb_and_is_said(words, target):
    Path("a.jpg").write_bytes(jpeg((32, 32), "CMYK"))
    run(*words, "a.jpg", target, "--report", "r.json")
    assert opened(target).mode != "CMYK"
    assert "CMYK becomes RGB, without a profile" in notes()


def test_a_profile_for_inks_is_not_given_to_alpha():
    rgba = Image.fromarray(noise((8, 8, 4), "uint8"))
    rgba.save("a.png", icc_profile=cmyk_profile())
    run("flip", "--axis", "1", "a.png", "b.png", "--report", "r.json")
    assert "icc_profile" not in opened("b.png").info
    assert notes() == ["the ICC profile is for CMYK and the pixels are RGB, so it is dropped"]


def test_four_channels_made_of_inks_are_colour_and_alpha():
    Image.fromarray(noise((20, 31, 4), "uint8"), "CMYK").save("a.tif")
    run("cvtcolor", "--code", "rgb2rgba", "a.tif", "b.tif")
    assert opened("b.tif").mode == "RGBA"
    assert (np.asarray(opened("b.tif").convert("RGB")) == opened("a.tif").convert("RGB")).all()


def test_a_check_of_what_stayed_cmyk_holds():
    Path("a.jpg").write_bytes(jpeg((33, 17), "CMYK", progressive=True))
    run("flip", "--axis", "1", "a.jpg", "out")
    run("flip", "--axis", "1", "a.jpg", "out", "--check")
    assert opened("out/a.jpg").info["progressive"] == 1
    run("flip", "--axis", "0", "a.jpg", "out", "--check", code=1)
