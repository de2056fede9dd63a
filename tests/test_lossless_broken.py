"""Broken JPEGs are never moved to whole-looking ones, and never end the process."""

import numpy as np
import pytest
from test_lossless import jpeg, moved

import cvcli as library
from cvcli import codecs
from cvcli.core.turn import Turn
from cvcli.errors import ImageError


@pytest.mark.parametrize("options", ({}, {"progressive": True}, {"restart_marker_blocks": 2}))
def test_a_file_cut_anywhere_is_an_error_and_never_a_file(options):
    data = jpeg((24, 24), **options)
    turn = Turn(0, 0, 24, 24)
    for length in range(len(data)):
        with pytest.raises(ImageError, match=r"truncated|corrupt"):
            codecs.moved(data[:length], turn, codecs.Metadata())


def test_broken_bytes_are_an_error_or_a_file():
    rng, done = np.random.default_rng(5), 0
    for options in ({}, {"progressive": True}, {"optimize": True, "subsampling": 0}):
        data = jpeg((40, 24), **options)
        for _ in range(300):
            bad = bytearray(data)
            for place in rng.integers(2, len(data), rng.integers(1, 5)):
                bad[place] = rng.integers(256)
            try:
                codecs.moved(bytes(bad), Turn(0, 0, 40, 24), codecs.Metadata())
                done += 1
            except ImageError:
                pass
    assert 0 < done < 900


def test_a_missing_library_is_told(monkeypatch):
    from cvcli.codecs import _dct

    monkeypatch.setattr(library, "__path__", [])
    _dct._library.cache_clear()
    with pytest.raises(ImageError, match=r"cvcli_jpeg") as caught:
        moved(jpeg((16, 16)))
    assert "reinstall" in caught.value.tip
    _dct._library.cache_clear()


def test_a_second_start_of_image_hides_no_other_size():
    data = jpeg((32, 32))
    hidden = jpeg((4000, 4000), "L")
    for bad in (
        data[:2] + b"\xff\xd8" + data[2:],
        hidden[: hidden.index(b"\xff\xda")] + data[2:],
        data[:2] + b"\xff\xd8\x00\x04\xff\xd8" + data[2:],
    ):
        try:
            small = codecs.probe(bad).spec
        except ImageError:
            continue
        turn = Turn(0, 0, small.width, small.height)
        try:
            assert codecs.probe(codecs.moved(bad, turn, codecs.Metadata())).spec == small
        except ImageError as error:
            assert "JPEG" in str(error)
