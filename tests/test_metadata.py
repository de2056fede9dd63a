"""What a file says beside its pixels comes through a run: read back by Pillow and tifffile."""

import io
import json
import struct
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from conftest import noise
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, PngImagePlugin
from test_cli import FLIP

from cvcli import codecs
from cvcli.cli.app import run_app
from cvcli.codecs._metadata import Density

FORMATS = {"JPEG": "jpg", "PNG": "png", "WEBP": "webp", "TIFF": "tif", "AVIF": "avif"}
SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
XMP = b'<?xpacket begin=""?><x:xmpmeta xmlns:x="adobe:ns:meta/">%s</x:xmpmeta><?xpacket end="w"?>'
TURNED_XMP = XMP % b'<rdf:Description tiff:Orientation="6" dc:title="t"/>'
THUMBNAIL = b"\xff\xd8" + b"thumbnail of what was cut away" * 9 + b"\xff\xd9"
NOTE = b"maker's note with offsets: " + bytes(range(64))
IPTC = b"\x1c\x02\x78\x00\x07caption"
MAKE, ORIENTATION, PIXEL_X, PIXEL_Y, MAKER = 0x010F, 0x0112, 0xA002, 0xA003, 0x927C
GPS, EXIF, PHOTOSHOP = 0x8825, 0x8769, b"Photoshop 3.0\0"


def directory(order, at, entries, after=0):
    """A directory at ``at``: tags of (number, type, count, bytes or number)."""
    values_at, table, values = at + 2 + 12 * len(entries) + 4, b"", b""
    for tag, kind, count, value in entries:
        if isinstance(value, bytes) and len(value) > 4:
            stored = struct.pack(order + "I", values_at + len(values))
            values += value + b"\0" * (len(value) % 2)
        elif isinstance(value, bytes):
            stored = value.ljust(4, b"\0")
        else:
            stored = struct.pack(order + {3: "Hxx", 4: "I"}[kind], value)
        table += struct.pack(order + "HHI", tag, kind, count) + stored
    return struct.pack(order + "H", len(entries)) + table + struct.pack(order + "I", after) + values


def exif(order="<", orientation=6, size=(31, 20)):
    """EXIF as a camera writes it: a maker's note, a place, and a thumbnail behind it all."""
    sub = [(PIXEL_X, 4, 1, size[0]), (PIXEL_Y, 3, 1, size[1]), (MAKER, 7, len(NOTE), NOTE)]
    gps = [(1, 2, 2, b"N\0"), (2, 5, 3, struct.pack(order + "6I", 48, 1, 8, 1, 30, 1))]
    first = [(MAKE, 2, 10, b"Some Make\0"), (ORIENTATION, 3, 1, orientation)]
    at = 8 + len(directory(order, 8, [*first, (EXIF, 4, 1, 0), (GPS, 4, 1, 0)]))
    gps_at = at + len(directory(order, at, sub))
    thumb_at = gps_at + len(directory(order, gps_at, gps))
    thumb = [(0x0103, 3, 1, 6), (0x0201, 4, 1, thumb_at + 42), (0x0202, 4, 1, len(THUMBNAIL))]
    pointers = [(EXIF, 4, 1, at), (GPS, 4, 1, gps_at)]
    block = (b"II" if order == "<" else b"MM") + struct.pack(order + "HI", 42, 8)
    block += directory(order, 8, [*first, *pointers], thumb_at)
    block += directory(order, at, sub) + directory(order, gps_at, gps)
    return block + directory(order, thumb_at, thumb) + THUMBNAIL


def picture(size=(31, 20), channels=3):
    pixels = noise((size[1], size[0], channels), "uint8")
    return Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)


def saved(image, format, **options):
    file = io.BytesIO()
    image.save(file, format, **options)
    return file.getvalue()


def run(*words, code=0):
    assert run_app([str(word) for word in words]) == code


def opened(path):
    # From memory: nothing is left open.
    image = Image.open(io.BytesIO(Path(path).read_bytes()))
    image.load()
    return image


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def source(format, order="<", **options):
    """A picture with all that Pillow can put into the format; XMP and DPI where it can."""
    extra = {"exif": b"Exif\0\0" + exif(order), "icc_profile": SRGB} | options
    if format in ("JPEG", "WEBP", "AVIF", "TIFF"):
        extra.setdefault("xmp", TURNED_XMP)
    if format == "TIFF":
        block = Image.Exif()
        block.load(b"Exif\0\0" + exif(order))
        block[700] = extra.pop("xmp")
        extra["exif"] = block
    if format in ("JPEG", "PNG", "TIFF"):
        extra["dpi"] = (300, 200)
    if format == "PNG":
        extra["pnginfo"] = PngImagePlugin.PngInfo()
        extra["pnginfo"].add_itxt("XML:com.adobe.xmp", TURNED_XMP.decode())
    if format == "WEBP":
        extra["lossless"] = True
    return saved(picture(), format, **extra)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("target", FORMATS)
def test_everything_a_format_can_hold_comes_through(format, target, order):
    name, result = f"a.{FORMATS[format]}", f"b.{FORMATS[target]}"
    Path(name).write_bytes(source(format, order))
    run(*FLIP, name, result)
    image = opened(result)
    # The picture lies on its side, so its height is the width of what is shown.
    assert image.size == (20, 31)
    block = image.getexif()
    assert block.get(ORIENTATION, 1) == 1 and block[MAKE].rstrip("\0") == "Some Make"
    inner, place = block.get_ifd(EXIF), block.get_ifd(GPS)
    assert (inner[PIXEL_X], inner[PIXEL_Y]) == (20, 31)
    assert inner[MAKER] == NOTE and tuple(place[2]) == (48, 8, 30)
    assert image.info["icc_profile"] == SRGB
    assert b"thumbnail of what" not in Path(result).read_bytes()
    xmp = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp").encode()
    assert bytes(xmp) == TURNED_XMP.replace(b'"6"', b'"1"')
    if {format, target} <= {"JPEG", "PNG", "TIFF"}:
        assert image.info["dpi"] == pytest.approx((200, 300), abs=0.02)


def test_a_makers_note_stays_where_its_offsets_point(here):
    Path("a.jpg").write_bytes(source("JPEG"))
    run(*FLIP, "a.jpg", "b.png")
    block = exif()
    kept = opened("b.png").info["exif"].removeprefix(b"Exif\0\0")
    assert kept.index(NOTE) == block.index(NOTE)
    assert len(kept) == len(block) - len(THUMBNAIL) - 42


@pytest.mark.parametrize("format", FORMATS)
def test_strip_drops_people_and_places_and_strip_all_the_rest(format):
    name = f"a.{FORMATS[format]}"
    Path(name).write_bytes(source(format))
    run(*FLIP, "--strip", name, f"private/{name}")
    run(*FLIP, "--strip-all", name, f"all/{name}")
    for folder in ("private", "all"):
        image = opened(Path(folder) / name)
        block = image.getexif()
        assert image.size == (20, 31)
        assert MAKE not in block and not block.get_ifd(GPS) and not block.get_ifd(EXIF)
        data = Path(folder, name).read_bytes()
        assert b"Some Make" not in data and b"xmpmeta" not in data
        assert (image.info.get("icc_profile") == SRGB) == (folder == "private")
        if format in ("JPEG", "PNG", "TIFF"):
            dpi = image.info.get("dpi", (1, 1))
            wanted = (200, 300) if folder == "private" else (1, 1)
            assert dpi == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("options", [(), ("--strip",), ("--strip-all",)])
@pytest.mark.parametrize("format", FORMATS)
def test_without_auto_orient_pixels_and_tag_stay(format, options):
    name = f"a.{FORMATS[format]}"
    Path(name).write_bytes(source(format))
    run(*FLIP, "--no-auto-orient", *options, name, f"out/{name}")
    header = codecs.probe(Path("out", name).read_bytes())
    assert header.orientation == 6
    if format != "AVIF":
        assert (header.spec.width, header.spec.height) == (31, 20)
    if format in ("PNG", "WEBP"):
        wanted = np.asarray(picture())[::-1, ::-1]
        np.testing.assert_array_equal(np.asarray(opened(Path("out", name))), wanted)


def segment(kind, body):
    return struct.pack(">BBH", 0xFF, kind, len(body) + 2) + body


def resource(number, body):
    return b"8BIM" + struct.pack(">HHI", number, 0, len(body)) + body + b"\0" * (len(body) % 2)


def rich_jpeg(*extra):
    data = saved(picture(), "JPEG", quality=85)
    return data[:20] + b"".join(extra) + data[20:]


def test_iptc_resources_and_comments_survive():
    resources = resource(0x0404, IPTC) + resource(0x040C, b"stale" * 3) + resource(0x0BB7, b"id")
    Path("a.jpg").write_bytes(
        rich_jpeg(
            segment(0xED, PHOTOSHOP + resources), segment(0xFE, b"first"), segment(0xFE, b"\xe9")
        )
    )
    run(*FLIP, "a.jpg", "b.jpg")
    data = Path("b.jpg").read_bytes()
    kept = resource(0x0404, IPTC) + resource(0x0BB7, b"id")
    assert segment(0xED, PHOTOSHOP + kept) in data
    assert segment(0xFE, b"first") + segment(0xFE, b"\xe9") in data
    run(*FLIP, "a.jpg", "c.tif")
    tags = opened("c.tif").tag_v2
    assert tags[33723] == IPTC and tags[34377] == kept and tags[270] == "first\n\xe9"
    run(*FLIP, "c.tif", "d.jpg")
    assert segment(0xED, PHOTOSHOP + kept) in Path("d.jpg").read_bytes()
    run(*FLIP, "a.jpg", "e.png")
    assert opened("e.png").text["Comment"] == "\xe9"


def test_a_profile_of_many_segments():
    profile = SRGB[:128] + bytes(range(256)) * 600
    Path("a.jpg").write_bytes(saved(picture(), "JPEG", icc_profile=profile))
    names = ("a.jpg", "b.jpg", "c.png", "d.webp", "e.tif", "f.avif", "g.jpg")
    for before, name in pairwise(names):
        run(*FLIP, before, name)
        assert opened(name).info["icc_profile"] == profile


def test_png_chunks_stay_byte_for_byte():
    from test_codecs import chunk, png, rows

    pixels = noise((9, 7, 3), "uint8")
    kept = chunk(b"cICP", b"\x09\x10\0\1") + chunk(b"gAMA", struct.pack(">I", 50000))
    kept += chunk(b"cHRM", struct.pack(">8I", *range(31270, 31278)))
    kept += chunk(b"pHYs", struct.pack(">IIB", 5000, 6000, 1))
    kept += chunk(b"tEXt", b"Title\0caf\xe9") + chunk(b"zTXt", b"Long\0\0" + b"packed")
    kept += chunk(b"iTXt", b"Title\0\0\0en\0\0caf\xc3\xa9")
    Path("a.png").write_bytes(png(7, 9, 8, 2, rows(pixels), kept + chunk(b"tIME", b"1234567")))
    run(*FLIP, "a.png", "b.png")
    data = Path("b.png").read_bytes()
    assert data[33 : 33 + len(kept)] == kept and b"tIME" not in data
    run(*FLIP, "--strip", "a.png", "c.png")
    data = Path("c.png").read_bytes()
    assert b"gAMA" in data and b"cHRM" in data and b"pHYs" in data
    assert b"tEXt" not in data and b"iTXt" not in data and b"zTXt" not in data


def test_exif_in_hexadecimal_text_is_exif():
    digits = (b"Exif\0\0" + exif()).hex()
    info = PngImagePlugin.PngInfo()
    info.add_text("Raw profile type exif", f"\nexif\n{len(digits) // 2:8}\n{digits}\n", zip=True)
    picture().save("a.png", pnginfo=info)
    run(*FLIP, "a.png", "b.png")
    image = opened("b.png")
    assert image.size == (20, 31) and image.getexif()[ORIENTATION] == 1
    assert "Raw profile type exif" not in image.text


BAD_EXIF = [
    b"",
    b"II",
    b"II*\0\xff\xff\xff\x7f",
    b"MM\0*\0\0\0\x08\xff\xff",
    exif()[:40],
    b"x" * 30,
]


@pytest.mark.parametrize("bad", BAD_EXIF)
@pytest.mark.parametrize("format", ["JPEG", "PNG", "WEBP"])
def test_malformed_exif_is_dropped_and_that_is_said(format, bad, capfd):
    name = f"a.{FORMATS[format]}"
    Path(name).write_bytes(saved(picture(), format, exif=b"Exif\0\0" + bad))
    run(*FLIP, name, f"out/{name}")
    assert not opened(Path("out", name)).getexif()
    said = capfd.readouterr().err
    assert "malformed EXIF is dropped" in said or not bad
    run(*FLIP, "--strict", name, f"strict/{name}", code=1 if bad else 0)


def test_malformed_profiles_are_dropped_and_a_wrong_one_too(capfd):
    gray = picture(channels=1)
    gray.save("wrong.png", icc_profile=SRGB)
    gray.save("wrong.jpg", icc_profile=SRGB)
    picture().save("bad.jpg", icc_profile=b"no profile")
    part = segment(0xE2, b"ICC_PROFILE\0\x02\x03" + SRGB)
    Path("part.jpg").write_bytes(rich_jpeg(part))
    run(*FLIP, "wrong.png", "wrong.jpg", "bad.jpg", "part.jpg", "out")
    said = capfd.readouterr().err
    for name in ("wrong.png", "wrong.jpg", "bad.jpg", "part.jpg"):
        assert "icc_profile" not in opened(Path("out", name)).info
        assert f"note: {name}: " in said
    assert "is for RGB and the pixels are gray" in said and "parts missing" in said


def test_what_a_target_lacks_is_said_and_strict_refuses_it(capfd):
    Path("a.jpg").write_bytes(source("JPEG"))
    run(*FLIP, "a.jpg", "b.bmp", "--report", "r.json")
    notes = json.loads(Path("r.json").read_text())["images"][0]["notes"]
    assert notes == [f"BMP can't hold {what}" for what in ("EXIF", "XMP", "the ICC profile")]
    assert opened("b.bmp").info["dpi"] == pytest.approx((200, 300), abs=0.02)
    run(*FLIP, "--strict", "a.jpg", "c.bmp", code=1)
    assert "BMP can't hold EXIF" in capfd.readouterr().err and not Path("c.bmp").exists()
    run(*FLIP, "--strict", "--strip-all", "a.jpg", "c.bmp")


def test_too_much_for_a_segment_is_said(capfd):
    picture().save("a.png", exif=b"Exif\0\0" + exif() + bytes(70000))
    run(*FLIP, "a.png", "b.jpg")
    assert "EXIF of more than 64 kB does not fit JPEG" in capfd.readouterr().err
    assert not opened("b.jpg").getexif()


@pytest.mark.parametrize("kind, stored", [(1, b"\6"), (3, b"\6\0\6\0"), (4, b"\6\0\0\0")])
def test_an_orientation_of_an_odd_type_is_reset_as_it_is_applied(kind, stored):
    count = 2 if kind == 3 else 1
    block = b"II*\0\x08\0\0\0" + directory("<", 8, [(ORIENTATION, kind, count, stored)])
    picture().save("a.png", exif=b"Exif\0\0" + block)
    run(*FLIP, "a.png", "b.png")
    assert opened("b.png").size == (20, 31)
    assert codecs.probe(Path("b.png").read_bytes()).orientation == 1


def test_previews_in_xmp_are_stale_too():
    xmp = XMP % b"<a/><xmp:Thumbnails>AAAA</xmp:Thumbnails><b/><xmp:Thumbnails>"
    picture().save("a.webp", xmp=xmp)
    run(*FLIP, "a.webp", "b.webp")
    assert opened("b.webp").info["xmp"] == XMP % b"<a/><b/><xmp:Thumbnails>"


def test_tiff_tags_by_tifffile():
    tifffile = pytest.importorskip("tifffile")
    Path("a.tif").write_bytes(source("TIFF"))
    run(*FLIP, "a.tif", "b.tif")
    with tifffile.TiffFile("b.tif") as file:
        tags = file.pages[0].tags
        assert tags["Make"].value == "Some Make" and tags[34675].value == SRGB
        assert tags["ExifTag"].value["MakerNote"] == NOTE and "Orientation" not in tags
        wanted = np.rot90(np.asarray(picture()), -1)[::-1, ::-1]
        np.testing.assert_array_equal(file.asarray(), wanted)


BYTES = st.binary(min_size=1, max_size=300)
LONG_BYTES = st.builds(lambda part, times: part * times, BYTES, st.integers(1, 600))
COMMENTS = st.lists(BYTES.filter(lambda text: b"\0" not in text), max_size=2)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["JPEG", "PNG", "WEBP", "TIFF"]),
    st.sampled_from([None, exif("<", 1), exif(">", 1)]),
    st.none() | LONG_BYTES,
    st.none() | LONG_BYTES,
    st.none() | BYTES,
    COMMENTS,
    st.none() | st.tuples(st.integers(1, 65535), st.integers(1, 65535), st.just("inch")),
)
def test_what_is_put_into_a_file_is_read_out_of_it(
    format, block, xmp, profile, record, comments, density
):
    pixels = noise((5, 7, 3), "uint8")
    icc = None if profile is None else SRGB[:128] + profile
    known = codecs.Metadata(
        block,
        xmp,
        icc,
        None if record is None else resource(0x0404, record),
        None if density is None else Density(*density),
        tuple(comments),
    )
    plain = codecs.probe(codecs.encode(pixels, format))
    ready = codecs.prepared(known, plain, plain.spec, format)
    data = codecs.encode(pixels, format, metadata=ready)
    header = codecs.probe(data)
    assert (header.spec, header.orientation) == (plain.spec, 1)
    found = codecs.metadata(data, header)
    assert not found.lost
    assert (found.xmp, found.icc) == (ready.xmp, ready.icc)
    assert found.resources == ready.resources and found.iptc == ready.iptc
    if ready.density is not None:
        assert found.density.per("inch") == pytest.approx(density[:2], abs=0.02)
    if format == "TIFF":
        assert (found.exif is None) == (block is None and not comments)
    else:
        assert found.exif == ready.exif
    if format == "JPEG":
        assert found.comments == ready.comments
    out = np.empty(pixels.shape, np.uint8)
    codecs.decode(data, header, out)
    if format in ("PNG", "TIFF"):
        np.testing.assert_array_equal(out, pixels)
