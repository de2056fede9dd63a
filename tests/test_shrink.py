"""JPEGs that a chain first makes much smaller are decoded small, unless ``--exact`` is given.

Pillow's ``draft`` and its resize of a fractional box are the oracle for the bytes, the whole
picture's resize for what they show.
"""

import io
import json
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from test_cli import load
from test_metadata import SRGB, exif, run, saved

import cvcli as library
from cvcli import codecs
from cvcli.batch.album import Care
from cvcli.batch.orient import oriented
from cvcli.batch.shrink import shrunk

PHOTO = Image.open(ROOT / "sample_images" / "rocket.jpg").convert("RGB")
FILTERS = {
    "box": Image.Resampling.BOX,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def jpeg(path, size, mode="RGB", **options):
    data = saved(PHOTO.resize(size).convert(mode), "JPEG", **{"quality": 90} | options)
    Path(path).write_bytes(data)
    return data


def psnr(one, other):
    return -10 * np.log10(np.mean((one.astype(float) - other) ** 2) / 255**2)


def small_plan(words, header, orientation=1):
    chain = library.parse_chain(words)
    whole = oriented(chain, orientation).plan(header.spec)
    return *shrunk(chain, header, orientation, whole), whole


@pytest.mark.parametrize("mode", ("RGB", "L"))
@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize(("side", "factor"), [(33, 8), (70, 4)])
def test_bytes_are_those_of_pillows_draft_and_resize(side, factor, filter, mode):
    data = jpeg("a.jpg", (611, 407), mode)
    run("resize", "--width", side, "--height", 2 * side // 3, "--filter", filter, "a.jpg", "a.png")
    image = Image.open(io.BytesIO(data))
    image.draft(None, (611 // factor, 407 // factor))
    assert image.size == (-(-611 // factor), -(-407 // factor))
    box = 0, 0, 611 / factor, 407 / factor
    wanted = np.asarray(image.resize((side, 2 * side // 3), FILTERS[filter], box=box))
    assert (load(Path("a.png")).squeeze() == wanted).all()


def test_a_disc_stays_where_it_is_and_as_it_is(here):
    """sharp #848: a symmetric picture of an odd size, whose centre must not move."""
    y, x = np.ogrid[:2225, :2725]
    disc = np.clip(900 - np.hypot(y - 1112, x - 1362) + 0.5, 0, 1) * 200 + 20
    Image.fromarray(disc.astype(np.uint8)).save("a.jpg", quality=95)
    for width in (100, 160, 333):
        run("resize", f"{width}x", "a.jpg", "a.png", "--overwrite", "--report", "r.json")
        run("resize", f"{width}x", "a.jpg", "b.png", "--overwrite", "--exact")
        factor = 8 if width < 171 else 4
        assert json.loads(Path("r.json").read_text())["images"][0]["notes"] == [
            f"decoded at 1/{factor}"
        ]
        got, exact = load(Path("a.png")), load(Path("b.png"))
        assert got.shape == exact.shape and psnr(got, exact) > 40
        weight = got[:, :, 0] - 20.0
        rows, columns = np.indices(weight.shape)
        for place, side in ((rows, weight.shape[0]), (columns, weight.shape[1])):
            assert abs((place * weight).sum() / weight.sum() - (side - 1) / 2) < 0.02


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 9000),
    st.integers(1, 9000),
    st.sampled_from(
        (
            "resize 12.5%",
            "resize 640x",
            "resize 300x200^",
            "resize 99x77>",
            "resize 3x100!",
            "resize --width 50",
            "resize --scale 0.07 | flip --axis 1",
            "resize 5000x5000<",
        )
    ),
    st.integers(1, 8),
)
def test_sizes_are_those_of_the_whole_image(width, height, words, orientation):
    spec = codecs.probe(saved(PHOTO, "JPEG")).spec
    header = codecs.probe(saved(PHOTO.resize((8, 8)), "JPEG"))
    spec = type(spec)(height, width, 3, "uint8")
    header = type(header)("JPEG", spec, orientation, 1, "RGB", header.coding)
    small, plan, whole = small_plan(words, header, orientation)
    assert plan.target == whole.target and plan.source == small.spec
    if small.shrink > 1:
        turned = (
            small.spec
            if orientation < 5
            else type(spec)(small.spec.width, small.spec.height, 3, "uint8")
        )
        assert turned.width >= 2 * plan.target.width and turned.height >= 2 * plan.target.height
    else:
        assert plan is whole


@pytest.mark.parametrize("orientation", range(1, 9))
def test_upright_from_every_orientation(here, orientation):
    jpeg("a.jpg", (403, 301), exif=b"Exif\0\0" + exif(orientation=orientation))
    run("resize", "30x", "a.jpg", "a.jpg.png")
    run("resize", "30x", "a.jpg", "b.png", "--exact")
    got, exact = load(Path("a.jpg.png")), load(Path("b.png"))
    assert got.shape == exact.shape and psnr(got, exact) > 44
    assert codecs.probe(Path("a.jpg.png").read_bytes()).orientation == 1


def test_a_chain_equals_its_steps(here):
    jpeg("a.jpg", (400, 300))
    run("run", "resize 20% | gaussian --sigma 1 | flip --axis 1 | invert", "a.jpg", "all.png")
    run("resize", "20%", "a.jpg", "1.png")
    run("gaussian", "--sigma", "1", "1.png", "2.png")
    run("run", "flip --axis 1 | invert", "2.png", "3.png")
    assert Path("3.png").read_bytes() == Path("all.png").read_bytes()
    run("flip", "--axis", "1", "a.jpg", "4.png")
    run("resize", "20%", "4.png", "5.png")
    run("run", "flip --axis 1 | resize 20%", "a.jpg", "6.png")
    assert (load(Path("5.png")) == load(Path("6.png"))).all()


@pytest.mark.parametrize(
    "words",
    [
        "resize 10% --filter nearest",
        "resize 10% --antialias off",
        "flip --axis 1 | resize 10%",
        "crop --width 160 --height 160 | resize 10%",
        "resize 40%",
        "resize 200%",
        "gaussian --sigma 1",
    ],
)
def test_nothing_else_is_decoded_small(words):
    data = jpeg("a.jpg", (400, 300))
    header = codecs.probe(data)
    small, plan, whole = small_plan(words, header)
    assert small is header and plan is whole


def test_only_what_libjpeg_can_do_and_what_is_asked_for():
    words = "resize 5%"
    sized = PHOTO.resize((400, 300))
    for data, done in (
        (saved(sized, "JPEG"), True),
        (saved(sized.convert("L"), "JPEG", progressive=True), True),
        (saved(sized.convert("CMYK"), "JPEG"), False),
        (saved(sized, "PNG"), False),
        (saved(sized, "WEBP"), False),
    ):
        assert (small_plan(words, codecs.probe(data))[0].shrink > 1) == done
    assert not Care().shrink


def test_what_is_kept_is_kept(here):
    options = {"quality": 83, "subsampling": 1, "icc_profile": SRGB, "dpi": (72, 72)}
    jpeg("a.jpg", (400, 300), exif=b"Exif\0\0" + exif(size=(400, 300)), **options)
    for name, words in (("b.jpg", []), ("c.jpg", ["--exact"]), ("d.jpg", [])):
        run("resize", "10%", "a.jpg", name, *words)
    small, exact, again = (Path(name).read_bytes() for name in ("b.jpg", "c.jpg", "d.jpg"))
    assert small == again != exact
    headers = [codecs.probe(data) for data in (small, exact)]
    assert headers[0] == headers[1] and headers[0].coding.level == 83
    assert codecs.metadata(small, headers[0]) == codecs.metadata(exact, headers[1])


def test_it_is_told_once_is_no_warning_and_checks_hold(here, capfd):
    Path("in").mkdir()
    for number in range(3):
        jpeg(f"in/{number}.jpg", (400, 300))
    options = ["--strict", "--fail-on", "warning", "--report", "r.json", "--name"]
    run("resize", "10%", "in", "out", *options, "{stem}-{width}x{height}.{ext}")
    assert {p.name for p in Path("out").iterdir()} == {f"{n}-40x30.jpg" for n in range(3)}
    assert "note: 3 images were decoded small" in capfd.readouterr().err
    rows = json.loads(Path("r.json").read_text())["images"]
    assert all(row["notes"] == ["decoded at 1/4"] and row["width_in"] == 400 for row in rows)
    run("resize", "10%", "in", "out", "--check", *options[-1:], "{stem}-{width}x{height}.{ext}")
    run("resize", "10%", "in", "exact", "--exact")
    assert "decoded" not in capfd.readouterr().err.split("check")[-1].splitlines()[-1]


def test_broken_files_are_told_and_kept_as_far_as_they_go(here, capfd):
    data = jpeg("a.jpg", (400, 300))
    Path("b.jpg").write_bytes(data[: len(data) // 2])
    run("resize", "10%", "b.jpg", "b.png", code=1)
    assert "b.jpg: truncated JPEG data" in capfd.readouterr().err
    run("resize", "10%", "b.jpg", "b.png", "--fail-on", "none")
    run("resize", "10%", "a.jpg", "a.png")
    top = load(Path("a.png")).shape[0] // 3
    assert (load(Path("b.png"))[:top] == load(Path("a.png"))[:top]).all()
