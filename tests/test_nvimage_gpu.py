"""The GPU's own codecs on a real GPU: their pixels, their files, and whole runs."""

from __future__ import annotations

import io

import imagecodecs
import numpy as np
import pytest
from conftest import noise
from PIL import Image, ImageCms
from test_nvimage import done, jpeg, notes, odd_files, picture

from cvcli import codecs
from cvcli.codecs import gpu
from cvcli.core.engine import engine_of
from cvcli.core.interop import as_tensor
from cvcli.core.stream import Stream

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpu.installed(), reason="nvImageCodec is not installed"),
]
SIZES = ((48, 64), (33, 47), (240, 321), (720, 1280))
# The hardware engine is one level off here and there, the other decoder up to three.
MOST, MEAN = 3, 0.1


@pytest.fixture(scope="module")
def coder():
    return gpu.Coder(0)


@pytest.fixture
def stream():
    return Stream("cuda:0")


def host(image, stream):
    """Pixels of an image on the GPU, row by row as its pitch says."""
    spec, engine = image.spec, engine_of("cuda:0")
    room = engine.allocate_staging(image.row_pitch * spec.height)
    source = engine.adopt(image.pointer, image.row_pitch * spec.height, image)
    engine.copy(room, source, image.row_pitch * spec.height, stream)
    stream.sync()
    import ctypes

    data = ctypes.string_at(room.pointer, image.row_pitch * spec.height)
    rows = np.frombuffer(data, np.uint8).reshape(spec.height, image.row_pitch)
    return rows[:, : spec.width * spec.channels].reshape(spec.shape)


def loses_little(one, other, truth):
    """Whether a JPEG is hardly farther from the pixels it was made of than another one."""
    errors = [
        ((imagecodecs.jpeg8_decode(f).astype(float) - truth) ** 2).mean() for f in (one, other)
    ]
    # Small images are coded a little worse, for reasons of the GPU's encoder.
    return errors[0] < 1.1 * errors[1] + 0.3


def files():
    """Files of all sizes and samplings that the decoder is given."""
    found = []
    for number, size in enumerate(SIZES):
        found += [jpeg(picture(number, size), subsampling=s) for s in (0, 1, 2)]
        found.append(jpeg(noise((*size, 3), "uint8", number), quality=70))
        found.append(imagecodecs.jpeg8_encode(picture(number, size), subsampling="440"))
    return found


def test_pixels_are_those_of_libjpeg_but_for_a_few_levels(coder, stream):
    given = files()
    assert all(gpu.refusal(data, codecs.probe(data)) is None for data in given)
    images = coder.decode(given, stream.handle)
    for data, image in zip(given, images, strict=True):
        wanted = imagecodecs.jpeg8_decode(data).astype(int)
        assert image is not None and image.spec == codecs.probe(data).spec
        error = np.abs(host(image, stream) - wanted)
        assert error.max() <= MOST and error.mean() < MEAN, image.spec


def test_an_image_is_decoded_alike_alone_and_among_others(coder, stream):
    given = files() * 4
    together = [host(image, stream) for image in coder.decode(given, stream.handle)]
    other = gpu.Coder(0)
    for number, data in enumerate(given[: len(given) // 4]):
        (image,) = other.decode([data], stream.handle)
        for again in together[number :: len(given) // 4]:
            assert np.array_equal(again, host(image, stream))


def test_what_is_no_jpeg_gives_none(coder, stream):
    good = jpeg(picture(1))
    images = coder.decode([good, b"no image at all" * 9, good], stream.handle)
    assert [image is None for image in images] == [False, True, False]
    stream.sync()


@pytest.mark.parametrize("sampling", ("444", "422", "420", "440"))
@pytest.mark.parametrize("quality", (30, 90, 100))
def test_files_are_as_the_cpu_would_write_them(coder, stream, sampling, quality):
    pixels = [picture(n, size) for n, size in enumerate(SIZES)]
    tensors = [as_tensor(p, "HWC").to("cuda:0", stream) for p in pixels]
    images = [
        gpu.DeviceImage(t.pointer, p.shape[1] * 3, codecs.probe(jpeg(p)).spec, t)
        for t, p in zip(tensors, pixels, strict=True)
    ]
    recipe = gpu.Recipe(quality, sampling, False)
    coded = coder.encode(images, [recipe] * len(images), stream.handle)
    again = coder.encode(images[1:2], [recipe], stream.handle)
    assert again[0] == coded[1]
    for p, code in zip(pixels, coded, strict=True):
        assert code is not None
        file = bytes(code)
        header = codecs.probe(file)
        assert (header.coding.level, header.coding.sampling) == (quality, sampling)
        assert not header.coding.tables
        cpu = imagecodecs.jpeg8_encode(p, level=quality, subsampling=sampling)
        assert loses_little(file, cpu, p)
        assert abs(len(file) / len(cpu) - 1) < 0.15


@pytest.fixture
def folder(tmp_path):
    def fill(given):
        (tmp_path / "in").mkdir(exist_ok=True)
        for name, data in given.items():
            (tmp_path / "in" / name).write_bytes(data)
        return tmp_path / "in"

    return fill


def many(count=70):
    return {f"{i:02}.jpg": jpeg(picture(i, SIZES[i % len(SIZES)])) for i in range(count)}


def test_a_run_gives_the_pixels_and_metadata_of_the_cpu(folder):
    exif = Image.Exif()
    exif[0x0112], exif[0x010E] = 6, "a description"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    turned = jpeg(picture(5, (240, 321)), exif=exif, icc_profile=profile, dpi=(72, 144))
    source = folder({**many(), "turned.jpg": turned})
    ours = done(source, codec="gpu")
    theirs = done(source, out="cpu", codec="cpu")
    done(source, out="pixels", codec="cpu", wishes={"format": "npy"})
    assert (ours.images, ours.failed, notes(ours)) == (71, 0, [])
    for row, other in zip(ours.rows, theirs.rows, strict=True):
        assert not {"upload", "download"} & set(row.ms)
        one, two = row.output.read_bytes(), other.output.read_bytes()
        assert codecs.probe(one) == codecs.probe(two)
        assert codecs.metadata(one, codecs.probe(one)) == codecs.metadata(two, codecs.probe(two))
        truth = np.load(source.parent / "pixels" / f"{row.output.stem}.npy")
        assert loses_little(one, two, truth), row.input.name


def test_decoded_pixels_go_through_the_chain_as_uploaded_ones_do(folder):
    source = folder(many())
    done(source, codec="gpu", wishes={"format": "npy"})
    done(source, out="cpu", codec="cpu", wishes={"format": "npy"})
    for path in (source.parent / "out").iterdir():
        one, two = np.load(path), np.load(source.parent / "cpu" / path.name)
        error = np.abs(one.astype(int) - two)
        assert error.max() <= MOST and error.mean() < MEAN


@pytest.mark.parametrize("chain", ("flip --axis -1", "gaussian --size 15 --sigma 4 | resize 50%"))
def test_equal_runs_give_equal_bytes_whatever_the_batches(folder, chain):
    source = folder(many(120))
    runs = [
        done(source, chain, out=f"{number}", codec="gpu", device=device, batch_size=size)
        for number, (size, device) in enumerate(
            ((None, "cuda"), (None, "cuda"), (7, "cuda:all"), (1, "cuda:0"))
        )
    ]
    assert all(run.images == 120 and not notes(run) for run in runs)
    for rows in zip(*(run.rows for run in runs), strict=True):
        assert len({row.output.read_bytes() for row in rows}) == 1, rows[0].input.name


def test_odd_files_are_those_of_the_cpu(folder):
    source = folder({**odd_files(), **many(3)})
    report = done(source, codec="gpu")
    done(source, out="cpu", codec="cpu")
    assert report.images == 10
    for row in report.rows:
        if row.notes:
            one = Image.open(io.BytesIO(row.output.read_bytes()))
            with Image.open(source.parent / "cpu" / row.output.name) as two:
                assert one.quantization == two.quantization
                error = np.abs(np.asarray(one).astype(int) - np.asarray(two))
                # The same decoder, and two encoders.
                assert error.mean() < 2, row.input.name


def test_a_full_gpu_loses_no_image(folder):
    source = folder(many(40))
    done(source, out="before", codec="gpu")
    engine = engine_of("cuda:0")
    engine.release()
    held = engine.device.allocate(engine.device.memory_info()[0] - (96 << 20))
    try:
        report = done(source, codec="gpu")
    finally:
        engine.device.free(held)
    assert (report.images, report.failed) == (40, 0)
    done(source, out="pixels", codec="cpu", wishes={"format": "npy"})
    for row in report.rows:
        before = (source.parent / "before" / row.output.name).read_bytes()
        truth = np.load(source.parent / "pixels" / f"{row.output.stem}.npy")
        assert loses_little(row.output.read_bytes(), before, truth)
