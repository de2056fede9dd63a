"""Runs whose JPEGs take the GPU's codecs, with a stand-in for library and GPU."""

from __future__ import annotations

import io
import json
from collections import Counter

import imagecodecs
import numpy as np
import pytest
from conftest import noise
from fake_nvimgcodec import BackendKind, install
from PIL import Image, ImageCms

from cvcli import codecs
from cvcli.batch import run as running
from cvcli.batch.options import Options
from cvcli.batch.orient import oriented
from cvcli.batch.plan import make_plan
from cvcli.batch.report import Report
from cvcli.batch.run import run
from cvcli.cli.app import run_app
from cvcli.codecs import gpu
from cvcli.codecs.gpu import nvimage
from cvcli.errors import DeviceError, OutOfMemoryError
from cvcli.ops import parse_chain

FLIP = "flip --axis -1"


@pytest.fixture(autouse=True)
def chains_that_know_no_other_gpu():
    oriented.cache_clear()
    yield
    oriented.cache_clear()
    nvimage.end_idle()


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(running, "_MANY", 1)
    return install(monkeypatch)[0]


def picture(seed=0, size=(48, 64)):
    """Something smooth, so that a lossy file stays near."""
    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(40, 216, (6, 8, 3), np.uint8))
    return np.asarray(small.resize(size[::-1], Image.Resampling.BICUBIC))


def jpeg(pixels, **how):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG", **{"quality": 90, "subsampling": 2, **how})
    return file.getvalue()


@pytest.fixture
def folder(tmp_path):
    def fill(files):
        (tmp_path / "in").mkdir(exist_ok=True)
        for name, data in files.items():
            (tmp_path / "in" / name).write_bytes(data)
        return tmp_path / "in"

    return fill


def done(source, chain=FLIP, out="out", wishes=None, **options):
    """Run a chain over a folder; return the report."""
    target = source.parent / out
    plan = make_plan([source], target, **(wishes or {}))
    report = Report(plan)
    run(plan, parse_chain(chain), Options(**{"device": "cuda", "jobs": 3, **options}), report)
    return report


def notes(report):
    return [note for row in report.rows for note in row.notes]


def test_files_are_those_of_the_cpu_where_the_codecs_agree(fake, folder):
    """The stand-in is the CPU's own codec, so whatever differs would be the way there."""
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a description"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    source = folder(
        {
            "plain.jpg": jpeg(picture(1)),
            "odd.jpg": jpeg(picture(2, (37, 51))),
            "444.jpg": jpeg(picture(3), subsampling=0, quality=71),
            "422.jpg": jpeg(picture(4), subsampling=1, quality=33),
            "turned.jpg": jpeg(picture(5), exif=exif, icc_profile=profile, dpi=(72, 144)),
            "comment.jpg": jpeg(picture(6), comment=b"words", optimize=True),
        }
    )
    ours = done(source, "crop --width 33 --height 35 | invert")
    theirs = done(source, "crop --width 33 --height 35 | invert", out="cpu", codec="cpu")
    assert (ours.images, ours.failed, notes(ours)) == (6, 0, [])
    assert sum(fake.decoded) == 6 and sum(fake.encoded) == 6
    for row, other in zip(ours.rows, theirs.rows, strict=True):
        assert row.output.read_bytes() == other.output.read_bytes(), row.input.name
        assert row.device == "cuda:0"
        assert {"read", "decode", "encode", "write"} <= set(row.ms)
        assert not {"upload", "download"} & set(row.ms)


def test_pixels_are_downloaded_where_the_file_is_no_jpeg(fake, folder):
    source = folder({f"{i}.jpg": jpeg(picture(i, (40 + i, 50))) for i in range(5)})
    report = done(source, "resize 20x16 | normalize", wishes={"format": "npy"})
    done(source, "resize 20x16 | normalize", out="cpu", codec="cpu", wishes={"format": "npy"})
    assert (report.images, fake.encoded) == (5, [])
    for row in report.rows:
        other = source.parent / "cpu" / row.output.name
        assert np.array_equal(np.load(row.output), np.load(other))
        assert "download" in row.ms and "upload" not in row.ms


def test_what_the_cpu_decodes_may_be_encoded_by_the_gpu(fake, folder):
    pixels = picture(7)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    source = folder({"a.png": file.getvalue(), "b.jpg": jpeg(picture(8))})
    report = done(source, wishes={"format": "jpg"})
    assert (report.images, sum(fake.decoded), sum(fake.encoded)) == (2, 1, 2)
    found = imagecodecs.jpeg8_decode((source.parent / "out" / "a.jpg").read_bytes())
    assert np.abs(found.astype(int) - pixels[::-1, ::-1]).max() < 24
    assert "upload" in report.rows[0].ms and "download" not in report.rows[0].ms


def odd_files():
    cmyk = io.BytesIO()
    Image.fromarray(picture(1)).convert("CMYK").save(cmyk, "JPEG")
    tables = [[1 + i % 50 for i in range(64)], [2 + i % 40 for i in range(64)]]
    return {
        "cmyk.jpg": cmyk.getvalue(),
        "gray.jpg": jpeg(picture(2)[:, :, 0]),
        "progressive.jpg": jpeg(picture(3), progressive=True),
        "rgb.jpg": jpeg(picture(4), keep_rgb=True, subsampling=0),
        "tiny.jpg": jpeg(picture(5)[:16, :16]),
        "tables.jpg": jpeg(picture(6), qtables=tables),
        "411.jpg": imagecodecs.jpeg8_encode(picture(7), subsampling="411"),
    }


def test_odd_jpegs_take_the_cpu_decoder(fake, folder):
    source = folder(odd_files())
    report = done(source, codec="gpu")
    done(source, out="cpu", codec="cpu")
    assert (report.images, report.failed) == (7, 0)
    assert fake.decoded == [1], "only the one with odd tables is decoded there"
    told = {row.input.name: row.notes for row in report.rows}
    decoded = {name for name, said in told.items() if any("decoded on" in note for note in said)}
    assert decoded == set(told) - {"tables.jpg"}
    for row in report.rows:
        assert row.output.read_bytes() == (source.parent / "cpu" / row.output.name).read_bytes()


def test_tables_of_their_own_are_kept_by_the_cpu_encoder(fake, folder):
    file = odd_files()["tables.jpg"]
    source = folder({"a.jpg": file})
    done(source)
    assert (fake.decoded, fake.encoded) == ([1], [])
    with Image.open(source.parent / "out" / "a.jpg") as kept:
        assert kept.quantization == Image.open(io.BytesIO(file)).quantization
    done(source, out="asked", quality=80)
    assert fake.encoded == [1]


def test_a_truncated_file_fails_as_ever(fake, folder):
    whole = jpeg(picture(1))
    short = {"a.jpg": whole[: len(whole) // 2], "c.jpg": b"\xff\xd8\xff\xe0"}
    source = folder({"b.jpg": whole, **short})
    report = done(source)
    assert (report.images, report.failed) == (1, 2)
    assert "truncated" in (report.rows[0].error or "")
    again = done(source, out="lenient", fail_on="none")
    assert again.images == 2


def test_what_is_not_decoded_is_decoded_on_the_cpu(fake, folder):
    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(6)})

    def every_other(count):
        files = [jpeg(picture(9))] * count
        return [None if i % 2 else fake._decoded(file) for i, file in enumerate(files)]

    fake.spoil_decoding = lambda count: [None] * count
    report = done(source, jobs=1)
    done(source, out="cpu", codec="cpu")
    assert (report.images, report.failed) == (6, 0)
    assert fake.decoded == [6, 3, 1, 2, 1, 1, 3, 1, 2, 1, 1], "halves, down to single images"
    assert Counter(notes(report)) == {"decoded on the CPU: the GPU's decoder could not read it": 6}
    for row in report.rows:
        assert row.output.read_bytes() == (source.parent / "cpu" / row.output.name).read_bytes()
    fake.spoil_decoding = every_other
    again = done(source, out="half", jobs=1)
    assert (again.images, len(notes(again))) == (6, 3)


def test_a_file_of_another_size_than_its_header_says_is_not_believed(fake, folder):
    source = folder({"a.jpg": jpeg(picture(1))})
    fake.spoil_decoding = lambda count: [fake._decoded(jpeg(picture(2, (50, 64))))]
    report = done(source)
    assert report.images == 1 and "could not read" in notes(report)[0]


@pytest.mark.parametrize("error", (MemoryError("out of memory"), RuntimeError("CUDA error 700")))
def test_a_decoder_that_raises_leaves_the_rest_to_smaller_batches_and_the_cpu(fake, folder, error):
    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(4)})

    def most(count):
        if count > 2:
            raise error
        return None

    fake.spoil_decoding = most
    report = done(source, jobs=1)
    assert (report.images, notes(report), fake.decoded) == (4, [], [4, 2, 2])

    def never(count):
        raise error

    fake.spoil_decoding = never
    report = done(source, out="again", jobs=1)
    assert (report.images, len(notes(report))) == (4, 4)
    assert all(str(error) in note for note in notes(report))


def test_an_encoder_that_fails_leaves_it_to_the_cpu(fake, folder):
    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(4)})
    fake.spoil_encoding = lambda count: [None, b"\xff\xd8 cut off", *[None] * (count - 2)]
    report = done(source, jobs=1)
    done(source, out="cpu", codec="cpu")
    assert (report.images, len(notes(report))) == (4, 4)
    assert all(note.startswith("encoded on the CPU") for note in notes(report))
    for row in report.rows:
        assert row.output.read_bytes() == (source.parent / "cpu" / row.output.name).read_bytes()


def test_such_notes_are_no_warnings(fake, folder):
    source = folder({"a.jpg": jpeg(picture(1))})
    fake.spoil_decoding = lambda count: [None] * count
    assert done(source, fail_on="warning").images == 1


def test_no_room_on_the_gpu_for_the_result(fake, folder, monkeypatch):
    from cvcli.batch import lane

    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(4)})

    def full(*_):
        raise OutOfMemoryError("cuda:0: out of memory")

    monkeypatch.setattr(lane, "run_plans", full)
    report = done(source, jobs=1)
    assert (report.images, report.failed) == (4, 0)
    assert any("out of memory" in note for note in notes(report))


def test_a_library_that_does_not_work(fake, folder):
    source = folder({"a.jpg": jpeg(picture(1))})
    fake.broken = True
    report = done(source)
    assert report.images == 1 and "the CPU's codecs are used" in report.notes[0]
    with pytest.raises(DeviceError, match="nvImageCodec can't be used"):
        done(source, out="insisted", codec="gpu")


def test_a_gpu_without_the_hardware_engine(fake, folder):
    fake.refused = {BackendKind.HW_GPU_ONLY}
    assert nvimage.Coder(0)._decoder.kinds == [BackendKind.HYBRID_CPU_GPU]
    fake.refused = set()
    assert nvimage.Coder(0)._decoder.kinds == [BackendKind.HW_GPU_ONLY]


def test_insisting_where_there_is_nothing(monkeypatch, folder):
    source = folder({"a.jpg": jpeg(picture(1))})
    with pytest.raises(DeviceError, match="there is no GPU"):
        done(source, codec="gpu", device="cpu")
    install(monkeypatch)
    monkeypatch.setattr(gpu, "installed", lambda: False)
    with pytest.raises(DeviceError, match="not installed") as found:
        done(source, codec="gpu")
    assert "nvcodec" in (found.value.tip or "")
    assert done(source).images == 1


def test_a_few_files_are_left_to_the_cpu_unless_asked(fake, folder, monkeypatch):
    monkeypatch.setattr(running, "_MANY", 3)
    files = {f"{i}.jpg": jpeg(picture(i)) for i in range(2)}
    assert done(folder(files)).images == 2
    assert fake.decoded == []
    done(folder(files), out="asked", codec="gpu")
    assert sum(fake.decoded) == 2


def test_without_such_a_number_auto_is_the_cpu(fake, folder, monkeypatch):
    monkeypatch.setattr(running, "_MANY", None)
    assert done(folder({"a.jpg": jpeg(picture(1))})).images == 1
    assert fake.decoded == fake.encoded == []


def test_it_goes_by_all_files_and_not_by_those_left_to_do(fake, folder, monkeypatch):
    monkeypatch.setattr(running, "_MANY", 3)
    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(3)})
    done(source)
    (source.parent / "out" / "1.jpg").unlink()
    before = sum(fake.decoded)
    assert done(source, wishes={"skip_existing": True}).images == 1
    assert sum(fake.decoded) == before + 1


def test_a_check_takes_the_codecs_of_the_run(fake, folder, monkeypatch):
    monkeypatch.setattr(running, "_MANY", 2)
    source = folder({f"{i}.jpg": jpeg(picture(i)) for i in range(2)})
    words = [
        "flip",
        "--axis",
        "-1",
        str(source),
        str(source.parent / "out"),
        "--device",
        "cuda",
        "-q",
    ]
    assert run_app(words) == 0
    assert run_app([*words, "--check"]) == 0
    assert sum(fake.encoded) == 4
    out = source.parent / "out" / "0.jpg"
    out.write_bytes(jpeg(255 - picture(0)))
    assert run_app([*words, "--check"]) == 1


def test_pictures_of_one_file_and_conversions_take_the_cpu(fake, folder):
    first, second = Image.fromarray(picture(1)), Image.fromarray(picture(2))
    file = io.BytesIO()
    first.save(file, "MPO", save_all=True, append_images=[second])
    source = folder({"a.mpo": file.getvalue(), "b.jpg": jpeg(picture(3))})
    from cvcli.batch.album import Care

    report = done(source, wishes={"format": "png"}, care=Care(to_srgb=True))
    assert (report.images, fake.decoded, fake.encoded) == (2, [], [])


def test_images_of_a_batch_stay_until_they_are_used(fake, folder):
    """The stand-in's images are overwritten when they are let go of."""
    source = folder({f"{i:02}.jpg": jpeg(noise((64, 96, 3), "uint8", i)) for i in range(80)})
    report = done(source, "gaussian --size 5 --sigma 1 | flip --axis 0", jobs=4)
    done(source, "gaussian --size 5 --sigma 1 | flip --axis 0", out="cpu", codec="cpu")
    assert (report.images, max(fake.decoded)) == (80, 32)
    assert max(fake.encoded) == nvimage._ENCODED_AT_ONCE
    for row in report.rows:
        assert row.output.read_bytes() == (source.parent / "cpu" / row.output.name).read_bytes()


def test_a_run_is_one_of_several_gpus(monkeypatch, folder):
    monkeypatch.setattr(running, "_MANY", 1)
    fake, gpus = install(monkeypatch, count=3)
    source = folder({f"{i:02}.jpg": jpeg(picture(i)) for i in range(36)})
    report = done(source, device="cuda:all", batch_size=3)
    assert report.device == "cuda:0, cuda:1, cuda:2"
    assert report.images == 36 and sum(fake.decoded) == 36
    assert all(gpu.launches for gpu in gpus)
    used = Counter(row.device for row in report.rows)
    assert set(used) == {"cuda:0", "cuda:1", "cuda:2"}
    without = done(source, out="cpu", device="cuda:all", batch_size=3, codec="cpu")
    assert {row.device for row in without.rows} <= set(used)
    for row, other in zip(report.rows, without.rows, strict=True):
        assert row.output.read_bytes() == other.output.read_bytes()


def test_the_command_line_knows_them(fake, folder, tmp_path):
    source = folder({"a.jpg": jpeg(picture(1))})
    file = tmp_path / "report.json"
    words = ["flip", "--axis", "0", str(source), str(tmp_path / "out"), "-q", "--report", str(file)]
    assert run_app([*words, "--codec", "gpu", "--device", "cuda:all"]) == 0
    assert json.loads(file.read_text())["device"] == "cuda:0"
    assert run_app([*words, "--codec", "gpu", "--device", "cpu", "--overwrite"]) == 2


def test_recipes_are_those_of_the_cpu_encoder():
    for sampling, quality in (("444", 41), ("422", 95), ("420", 12)):
        data = jpeg(picture(1), quality=quality, subsampling=f"{':'.join(sampling)}")
        header = codecs.probe(data)
        assert gpu.recipe(header.spec, "JPEG", None, header) == gpu.Recipe(quality, sampling, False)
        assert gpu.recipe(header.spec, "PNG", None, header) is None
        assert gpu.recipe(header.spec, "JPEG", 70, header) == gpu.Recipe(70, sampling, False)
    png = io.BytesIO()
    Image.fromarray(picture(1)).save(png, "PNG")
    header = codecs.probe(png.getvalue())
    assert gpu.recipe(header.spec, "JPEG", None, header) == gpu.Recipe(90, "420", False)
