"""``--lossless``: JPEG is moved without decoding it, or the reason why not is told.

Pillow's libjpeg-turbo made the files, and decodes what became of them. Its entropy-coded data are
the oracle for equal coefficients: the same ones, coded the same way, are the same bytes.
"""

import io
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from conftest import ROOT, noise
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from test_cli import cvcli, load
from test_metadata import IPTC, SRGB, TURNED_XMP, exif, opened, resource, run, saved, segment

import cvcli as library
from cvcli import codecs
from cvcli.core.spec import ImageSpec
from cvcli.core.turn import Turn, turn_of
from cvcli.errors import ImageError, ParameterError

SMOOTH = Image.open(ROOT / "sample_images" / "rocket.jpg")
SMOOTH.load()
SUBSAMPLINGS = {0: (8, 8), 1: (16, 8), 2: (16, 16)}


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def jpeg(size, mode="RGB", **options):
    image = SMOOTH.resize(size).convert(mode)
    return saved(image, "JPEG", **{"quality": 85, "subsampling": 2} | options)


def shown(data):
    array = np.asarray(Image.open(io.BytesIO(data)))
    return array.reshape(*array.shape[:2], -1).astype(int)


def moved(data, **how):
    spec = codecs.probe(data).spec
    turn = Turn(**{"x": 0, "y": 0, "width": spec.width, "height": spec.height} | how)
    return codecs.moved(data, turn, codecs.Metadata())


def scans(data):
    """All from the first scan or its code tables on."""
    return data[min(data.index(b"\xff\xda"), data.index(b"\xff\xc4")) :]


def turned(pixels, how):
    pixels = pixels[:, ::-1] if how.get("flip_x") else pixels
    pixels = pixels[::-1] if how.get("flip_y") else pixels
    return pixels.swapaxes(0, 1) if how.get("transpose") else pixels


KINDS = [
    pytest.param(mode, options, id=f"{mode}-{'-'.join(map(str, options.values()))}")
    for mode in ("L", "RGB", "CMYK")
    for subsampling in SUBSAMPLINGS
    for options in (
        {"subsampling": subsampling},
        {"subsampling": subsampling, "optimize": True},
        {"subsampling": subsampling, "progressive": True},
        {"subsampling": subsampling, "restart_marker_blocks": 3},
    )
    if mode == "RGB" or subsampling == 2
]
TURNS = [{"flip_x": bool(n & 1), "flip_y": bool(n & 2), "transpose": bool(n & 4)} for n in range(8)]


@pytest.mark.parametrize(("mode", "options"), KINDS)
def test_each_turn_has_the_very_coefficients(mode, options):
    data = jpeg((64, 48), mode, **options)
    whole = shown(data)
    for how in TURNS:
        once = moved(data, **how)
        # The IDCT rounds each sample to the nearest, but not evenly; so does the colour transform.
        assert np.abs(shown(once) - turned(whole, how)).max() <= (3 if mode == "RGB" else 1)
        back = {"flip_x": how["flip_y"], "flip_y": how["flip_x"]} if how["transpose"] else how
        assert scans(moved(once, **back | {"transpose": how["transpose"]})) == scans(data)
    assert Image.open(io.BytesIO(once)).info.get("progressive") == (
        1 if "progressive" in options else None
    )


@pytest.mark.parametrize(("mode", "options"), KINDS)
def test_odd_sizes_stay_byte_for_byte_where_nothing_moves(mode, options):
    data = jpeg((43, 29), mode, **options)
    assert scans(moved(data)) == scans(data)


@pytest.mark.parametrize("subsampling", SUBSAMPLINGS)
def test_four_quarter_turns_are_none(subsampling):
    data = turn = jpeg((64, 48), subsampling=subsampling)
    for _ in range(4):
        turn = moved(turn, flip_x=True, transpose=True)
    assert scans(turn) == scans(data)
    assert (shown(turn) == shown(data)).all()


def test_tables_of_a_transposed_image_are_transposed():
    rising = [min(255, 1 + place) for place in range(64)]
    data = saved(SMOOTH.resize((32, 16)), "JPEG", qtables=[rising, rising], subsampling=0)
    image = Image.open(io.BytesIO(moved(data, transpose=True)))
    assert image.quantization[0] == np.reshape(rising, (8, 8)).T.flatten().tolist()
    assert np.abs(shown(moved(data, transpose=True)) - shown(data).swapaxes(0, 1)).max() <= 3


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_chain_of_turns_and_aligned_crops_gives_the_chains_pixels(data):
    """Gray and unsubsampled images, as smooth chroma looks across the edge of a crop."""
    gray = data.draw(st.booleans())
    file = jpeg((96, 72), "L" if gray else "RGB", subsampling=0)
    words, width, height = [], 96, 72
    for _ in range(data.draw(st.integers(1, 4))):
        kind = data.draw(st.sampled_from(("flip", "rotate", "crop")))
        if kind == "flip":
            words.append(f"flip --axis {data.draw(st.integers(-1, 1))}")
        elif kind == "rotate":
            turns = data.draw(st.integers(-4, 4))
            words.append(f"rotate --angle {90 * turns}")
            width, height = (height, width) if turns % 2 else (width, height)
        else:
            x, y = (8 * data.draw(st.integers(0, n // 8 - 1)) for n in (width, height))
            width, height = (
                8 * data.draw(st.integers(1, (n - at) // 8)) for n, at in ((width, x), (height, y))
            )
            words.append(f"crop --x {x} --y {y} --width {width} --height {height}")
    chain = library.parse_chain(" | ".join(words))
    header = codecs.probe(file)
    turn = turn_of(chain, header.spec)
    assert codecs.turn_refusal(header, turn) is None
    pixels = library.as_tensor(shown(file).astype(np.uint8), "HWC")
    wanted = library.apply(chain, pixels).numpy().astype(int)
    got = shown(codecs.moved(file, turn, codecs.Metadata()))
    assert got.shape == wanted.shape == turn.result(header.spec).shape
    assert np.abs(got - wanted).max() <= (1 if gray else 3)


def test_a_crop_may_end_anywhere_and_a_flip_may_start_anywhere():
    for size in ((61, 43), (64, 48)):
        data = jpeg(size, "L")
        part = moved(data, x=8, y=16, width=37, height=21)
        assert np.abs(shown(part) - shown(data)[16:37, 8:45]).max() <= 1
        flipped = moved(data, x=3, y=1, width=45, height=39, flip_x=True, flip_y=True)
        assert np.abs(shown(flipped) - shown(data)[39::-1, 47::-1][:39, :45]).max() <= 1


@pytest.mark.parametrize(
    ("words", "size", "subsampling", "edge"),
    [
        ("flip --axis -1", (33, 17), 2, "x=33"),
        ("flip --axis 0", (32, 17), 2, "y=17"),
        ("rotate --angle 90", (33, 16), 2, "x=33"),
        ("rotate --angle -90", (32, 24), 2, "y=24"),
        ("crop --x 8 --width 8 --height 8", (32, 32), 2, "x=8"),
        ("crop --y 4 --width 8 --height 8", (32, 32), 0, "y=4"),
        ("crop --width 20 --height 8 | flip --axis 1", (32, 32), 1, "x=20"),
    ],
)
def test_what_would_misplace_an_edge_is_refused(here, capfd, words, size, subsampling, edge):
    Path("a.jpg").write_bytes(jpeg(size, subsampling=subsampling))
    run("run", words, "a.jpg", "out", "--lossless", code=2)
    message = capfd.readouterr().err
    unit = "{}x{}".format(*SUBSAMPLINGS[subsampling])
    assert f"a.jpg: only whole blocks of {unit} px" in message and f"edge at {edge} " in message
    assert "tip: crop it to whole blocks" in message and not Path("out").exists()


@pytest.mark.parametrize(
    ("words", "size", "subsampling"),
    [
        ("flip --axis -1", (32, 16), 2),
        ("flip --axis 0", (33, 16), 2),
        ("rotate --angle 90", (32, 17), 2),
        ("rotate --angle -90", (33, 32), 2),
        ("flip --axis -1", (40, 24), 0),
        ("crop --width 32 --height 16 | flip --axis -1", (33, 17), 2),
        ("crop --x 16 --y 8 --width 5 --height 3", (33, 17), 1),
    ],
)
def test_what_misplaces_none_is_done(here, words, size, subsampling):
    Path("a.jpg").write_bytes(jpeg(size, subsampling=subsampling))
    run("run", words, "a.jpg", "out", "--lossless")
    run("run", words, "a.jpg", "a.png")
    apart = np.abs(load(Path("out/a.jpg")).astype(int) - load(Path("a.png")))
    # Smooth chroma looks across the edge of a crop.
    assert (apart[1:-1, 1:-1] if "crop" in words else apart).max() <= 3


def test_4_1_1_stands_upright_after_a_quarter_turn(here):
    import imagecodecs

    pixels = np.asarray(SMOOTH.resize((64, 32)))
    Path("a.jpg").write_bytes(imagecodecs.jpeg8_encode(pixels, level=90, subsampling="411"))
    run("rotate", "--angle", "90", "a.jpg", "b.jpg", "--lossless")
    header = codecs.probe(Path("b.jpg").read_bytes())
    assert header.coding.unit == (8, 32) and header.spec.shape == (64, 32, 3)
    run("rotate", "--angle", "-90", "b.jpg", "c.jpg", "--lossless")
    assert scans(Path("c.jpg").read_bytes()) == scans(Path("a.jpg").read_bytes())


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientation_is_applied_without_loss_and_reset(here, orientation):
    block = exif(orientation=orientation, size=(48, 32))
    data = jpeg((48, 32), "L", exif=b"Exif\0\0" + block)
    Path("a.jpg").write_bytes(data)
    run("flip", "--axis", "1", "a.jpg", "b.jpg", "--lossless")
    run("flip", "--axis", "1", "a.jpg", "b.png")
    assert np.abs(load(Path("b.jpg")).astype(int) - load(Path("b.png"))).max() <= 1
    told = opened("b.jpg").getexif()
    assert told[0x0112] == 1
    assert [told.get_ifd(0x8769)[tag] for tag in (0xA002, 0xA003)] == list(opened("b.jpg").size)
    run("flip", "--axis", "1", "a.jpg", "c.jpg", "--lossless", "--no-auto-orient")
    assert opened("c.jpg").getexif()[0x0112] == orientation
    assert (shown(Path("c.jpg").read_bytes()) - shown(data)[:, ::-1]).max() <= 1


def test_metadata_come_along(here):
    extra = segment(0xED, b"Photoshop 3.0\0" + resource(0x0404, IPTC)) + segment(0xFE, b"a comment")
    data = jpeg((32, 32), exif=b"Exif\0\0" + exif(), xmp=TURNED_XMP, icc_profile=SRGB, dpi=(72, 96))
    Path("a.jpg").write_bytes(data[:2] + extra + data[2:])
    run("flip", "--axis", "0", "a.jpg", "b.jpg", "--lossless")
    run("flip", "--axis", "0", "a.jpg", "c.jpg")
    lossless, usual = (
        codecs.metadata(d, codecs.probe(d))
        for d in map(Path.read_bytes, map(Path, ("b.jpg", "c.jpg")))
    )
    assert lossless == usual and lossless.icc == SRGB and b"a comment" in lossless.comments
    run("flip", "--axis", "0", "a.jpg", "d.jpg", "--lossless", "--strip-all")
    assert not {"exif", "icc_profile", "xmp"} & set(opened("d.jpg").info)


@pytest.mark.parametrize("progressive", (False, True))
def test_inks_and_their_profile_stay(here, progressive):
    profile = bytearray(SRGB)
    profile[16:20] = b"CMYK"
    data = jpeg((32, 16), "CMYK", progressive=progressive, icc_profile=bytes(profile))
    Path("a.jpg").write_bytes(data)
    run("flip", "--axis", "1", "a.jpg", "b.jpg", "--lossless", "--strict")
    image = opened("b.jpg")
    assert image.mode == "CMYK" and image.info["icc_profile"] == bytes(profile)
    assert np.abs(np.asarray(image).astype(int) - shown(data)[:, ::-1]).max() <= 1


def test_other_steps_are_named(here, capfd):
    for name in ("a.jpg", "b.jpg"):
        Path(name).write_bytes(jpeg((32, 32)))
    for words in (
        "gaussian --sigma 1",
        "pad --top 8",
        "flip --axis 1 | invert",
        "rotate --angle 9",
    ):
        run("run", words, "a.jpg", "b.jpg", "out", "--lossless", code=2)
        name = words.split(" | ")[-1].split()[0]
        error = capfd.readouterr().err
        assert f"{name}: is no flip, quarter turn or crop" in error and "--format png" in error
    run("gaussian", "--sigma", "1", "a.jpg", "b.jpg", "out", "--lossless", "--format", "png")
    assert sorted(p.name for p in Path("out").iterdir()) == ["a.png", "b.png"]


def test_formats_that_lose_nothing_take_any_chain_and_webp_becomes_lossless(here, capfd):
    pixels = noise((20, 30, 3), "uint8")
    Image.fromarray(pixels).save("a.png")
    Path("b.jpg").write_bytes(jpeg((33, 17)))
    for suffix in ("tif", "bmp", "webp", "npy"):
        run("invert", "a.png", f"a.{suffix}", "--lossless")
    assert (load(Path("a.webp")) == 255 - pixels).all()
    for suffix in ("jpg", "avif", "gif"):
        run("invert", "a.png", f"no.{suffix}", "--lossless", code=2)
        assert "can't be encoded without loss" in capfd.readouterr().err
        assert not Path(f"no.{suffix}").exists()
    run("flip", "--axis", "-1", "b.jpg", "b.webp", "--lossless")
    assert (load(Path("b.webp")) == load(Path("b.jpg"))[::-1, ::-1]).all()


def test_one_that_can_not_is_named_and_the_others_are_done(here, capfd):
    Path("in").mkdir()
    Path("in/good.jpg").write_bytes(jpeg((32, 32)))
    Path("in/odd.jpg").write_bytes(jpeg((31, 32)))
    Image.fromarray(noise((5, 7, 3), "uint8")).save("in/c.png")
    run("flip", "--axis", "1", "in", "out", "--lossless", "--report", "r.json", code=1)
    assert sorted(p.name for p in Path("out").iterdir()) == ["c.png", "good.jpg"]
    assert "odd.jpg: only whole blocks" in capfd.readouterr().err
    assert '"name": "transcode"' in Path("r.json").read_text()
    run("flip", "--axis", "1", "in", "out", "--lossless", "--check", code=1)
    assert "good.jpg" not in capfd.readouterr().err
    before = Path("in/good.jpg").read_bytes()
    for _ in range(2):
        run("flip", "--axis", "1", "in/good.jpg", "--lossless", "--in-place", "--overwrite", code=2)
        run("flip", "--axis", "1", "in/good.jpg", "--lossless", "--in-place")
    assert scans(Path("in/good.jpg").read_bytes()) == scans(before)


def test_through_pipes(here):
    Path("in").mkdir()
    Path("in/a.jpg").write_bytes(jpeg((32, 32)))
    Path("in/b.jpg").write_bytes(jpeg((33, 32)))
    import subprocess

    done = cvcli("flip", "--axis", "1", "--lossless", "in", "-", stdout=subprocess.PIPE)
    assert done.returncode == 1 and "b.jpg: only whole blocks" in done.stderr
    with tarfile.open("t.tar", "w") as tar:
        tar.add("in/a.jpg"), tar.add("in/b.jpg")
    with Path("t.tar").open("rb") as tar:
        done = cvcli("flip", "--axis", "1", "--lossless", "-", "out", stdin=tar)
    assert done.returncode == 1 and "b.jpg: only whole blocks" in done.stderr
    run("flip", "--axis", "1", "in/a.jpg", "a.jpg", "--lossless")
    assert Path("out/in/a.jpg").read_bytes() == Path("a.jpg").read_bytes()


def test_contradictions_are_refused(here, capfd):
    Path("a.jpg").write_bytes(jpeg((32, 32)))
    for words in (["--quality", "80"], ["--to-srgb"]):
        run("flip", "--axis", "1", "a.jpg", "b.jpg", "--lossless", *words, code=2)
        assert f"--lossless and {words[0]}: only one" in capfd.readouterr().err


def test_max_memory_holds(here, capfd):
    Path("a.jpg").write_bytes(jpeg((512, 512)))
    run("flip", "--axis", "1", "a.jpg", "b.jpg", "--lossless", "--max-memory", "1M", code=1)
    assert "more than the limit" in capfd.readouterr().err
    run("flip", "--axis", "1", "a.jpg", "b.jpg", "--lossless", "--max-memory", "3M")


def test_arithmetic_and_lossless_coding_is_refused():
    import imagecodecs

    data = imagecodecs.jpeg8_encode(np.asarray(SMOOTH.resize((16, 16))), lossless=True)
    reason = codecs.turn_refusal(codecs.probe(data), Turn(0, 0, 16, 16))
    assert "arithmetic-coded or lossless" in reason
    with pytest.raises(ImageError, match="can't be moved"):
        codecs.moved(data, Turn(0, 0, 16, 16), codecs.Metadata())


def test_12_bits_stay_12_bits():
    import imagecodecs

    pixels = (noise((32, 48, 1), "uint16")[:, :, 0] >> 4).astype(np.uint16)
    data = imagecodecs.jpeg8_encode(pixels, level=100, bitspersample=12)
    assert scans(moved(moved(data, flip_x=True), flip_x=True)) == scans(moved(data))
    got = imagecodecs.jpeg8_decode(moved(data, flip_x=True)).astype(int)
    assert np.abs(got - imagecodecs.jpeg8_decode(data)[:, ::-1]).max() <= 1


def test_threads_give_the_same_bytes():
    files = [jpeg((64, 48), progressive=bool(n % 2), quality=60 + n) for n in range(8)]
    with ThreadPoolExecutor(4) as pool:
        several = list(pool.map(lambda data: moved(data, flip_y=True), files * 3))
    assert several == [moved(data, flip_y=True) for data in files] * 3


def test_what_a_chain_does_is_told_in_the_sources_pixels():
    spec = ImageSpec(30, 40, 3, "uint8")
    chain = library.parse_chain("crop --x 8 --y 4 --width 24 --height 20 | rotate --angle 90")
    assert turn_of(chain, spec) == Turn(8, 4, 24, 20, flip_x=True, transpose=True)
    assert turn_of(library.parse_chain("resize 40x30"), spec) == Turn(0, 0, 40, 30)
    with pytest.raises(ParameterError, match="resize: is no"):
        turn_of(library.parse_chain("resize 50%"), spec)
