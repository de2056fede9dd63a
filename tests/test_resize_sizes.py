"""How the sizes of resize are spelled, in Python, in chains and on the command line."""

from __future__ import annotations

import pytest
from conftest import ROOT, fresh_python, noise
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import cvcli
from cvcli.cli.app import run_app
from cvcli.core.spec import ImageSpec
from cvcli.errors import ParameterError, UsageError
from cvcli.ops import parse_chain
from cvcli.ops._geometry import size_of


@pytest.mark.parametrize(
    "geometry, source, wanted",
    (
        ("640x480", (1920, 1080), (640, 360)),
        ("640x480", (100, 200), (240, 480)),
        ("640x", (1920, 1080), (640, 360)),
        ("x480", (1920, 1080), (853, 480)),
        ("50%", (101, 33), (51, 17)),
        ("50%x25%", (100, 100), (50, 25)),
        ("33.3%", (1000, 10), (333, 3)),
        ("640x480>", (100, 200), (100, 200)),
        ("640x480>", (6400, 200), (640, 20)),
        ("640x480<", (100, 200), (240, 480)),
        ("640x480<", (100, 2000), (100, 2000)),
        ("200%>", (10, 20), (10, 20)),
        ("50%<", (10, 20), (10, 20)),
        ("200%x50%>", (10, 20), (10, 10)),
        ("640x480^", (1920, 1080), (853, 480)),
        ("640x480!", (1920, 1080), (640, 480)),
        ("640x!", (1920, 1080), (640, 1080)),
        ("1x1", (4000, 3), (1, 1)),
        ("1%", (3, 5000), (1, 50)),
    ),
)
def test_geometries(geometry, source, wanted):
    assert size_of(geometry, *source) == wanted
    target = parse_chain(f"resize {geometry}").plan(ImageSpec(*source[::-1], 3, "uint8")).target
    assert (target.width, target.height) == wanted


@given(*(st.integers(1, 5000) for _ in range(4)))
def test_fitting_and_covering(width, height, w, h):
    fitted, covering = size_of(f"{w}x{h}", width, height), size_of(f"{w}x{h}^", width, height)
    assert min(fitted) >= 1 and fitted[0] <= w and fitted[1] <= h
    assert fitted[0] == w or fitted[1] == h
    assert covering[0] >= w and covering[1] >= h and (covering[0] == w or covering[1] == h)
    shrunk = size_of(f"{w}x{h}>", width, height)
    assert shrunk == (fitted if width > w or height > h else (width, height))


@pytest.mark.parametrize(
    "text",
    ("", "x", "640", "0x5", "5x0", "-5x5", "50", "0%", "%", "5%%", "640x480>>", "4x4 ", "axb"),
)
def test_what_is_no_geometry(text):
    with pytest.raises(ParameterError, match="geometry must be a size such as 640x480"):
        cvcli.resize(cvcli.as_tensor(noise((5, 5, 3), "uint8")), geometry=text)


def test_sizes_in_python():
    src = cvcli.as_tensor(noise((10, 20, 3), "uint8"))
    assert cvcli.resize(src, 7, 3).shape == (3, 7, 3)
    assert cvcli.resize(src, 7).shape == (4, 7, 3)
    assert cvcli.resize(src, height=5).shape == (5, 10, 3)
    assert cvcli.resize(src, scale=1.5).shape == (15, 30, 3)
    assert cvcli.resize(src, scale="50%").shape == (5, 10, 3)
    assert cvcli.resize(src, scale=1e-9).shape == (1, 1, 3)
    assert cvcli.resize(src, geometry="8x8").shape == (4, 8, 3)


@pytest.mark.parametrize(
    "options, message",
    (
        ({}, "resize: a size must be given"),
        ({"width": 0}, "resize: width must be >= 1, got 0"),
        ({"scale": 0}, "resize: scale must be > 0, got 0.0"),
        ({"scale": 1e9}, "resize: a side must be <= 10000000 px"),
        ({"geometry": "5x5", "width": 3}, "resize: geometry and width exclude each other"),
        ({"scale": 1, "height": 3}, "resize: scale and height exclude each other"),
        ({"width": 3, "filter": "cubic"}, "resize: filter must be one of nearest, box"),
        ({"width": 3, "antialias": 7}, "resize: antialias must be on or off, got 7"),
    ),
)
def test_what_is_refused(options, message):
    with pytest.raises(ParameterError) as failed:
        cvcli.resize(cvcli.as_tensor(noise((5, 5, 3), "uint8")), **options)
    assert str(failed.value).startswith(message)


@pytest.mark.parametrize(
    "text",
    (
        "resize 50%",
        "resize 640x480> --filter lanczos",
        "resize --width 30 --antialias off",
        "resize --scale 50% | resize 3x3^ --filter box | flip --axis 1",
    ),
)
def test_chains_print_what_parses_again(text):
    chain = parse_chain(text)
    assert str(chain) == text
    assert parse_chain(str(chain)) == chain


def test_a_second_word_is_refused():
    with pytest.raises(UsageError, match="resize: geometry is given twice"):
        parse_chain("resize 50% 60%")


def size_in(path):
    with Image.open(path) as image:
        return image.size


def test_the_command(tmp_path):
    code = "import sys; from cvcli.cli import main; sys.argv[0] = 'cvcli'; main()"
    source = ROOT / "sample_images" / "chelsea.png"
    wanted = size_in(source)

    def command(*words):
        words = ["cvcli", "resize", *map(str, words)]
        return fresh_python(f"import sys; sys.argv = {words!r}\n{code.partition('; ')[2]}")

    command("50%", source, tmp_path / "a.png", "--quiet", "--device", "cpu")
    assert size_in(tmp_path / "a.png") == tuple((side + 1) // 2 for side in wanted)
    command(source, tmp_path / "b.png", "--width", "32", "--height", "9", "-q", "--device", "cpu")
    assert size_in(tmp_path / "b.png") == (32, 9)


def test_a_geometry_beside_a_size_is_no_missing_file(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    for name in ("a.png", "b.png"):
        Image.new("L", (6, 4)).save(name)
    assert run_app(["resize", "50%", "--width", "3", "a.png", "b.png", "out"]) == 2
    assert "resize: geometry and width exclude each other" in capfd.readouterr().err
    assert not (tmp_path / "out").exists()
    # A file of such a name is an input.
    Image.new("L", (6, 4)).save("50%", format="PNG")
    assert run_app(["resize", "50%", "--width", "3", "out.png", "-q"]) == 0
    assert size_in("out.png") == (3, 2)
