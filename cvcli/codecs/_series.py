"""The pictures of a file one after the other, and how many of a broken one there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from cvcli.codecs import _frames, _front
from cvcli.codecs._base import Header, library_errors
from cvcli.errors import ImageError

if TYPE_CHECKING:
    from cvcli.codecs._base import Pixels
    from cvcli.codecs._frames import Frame


def frames(data: bytes, header: Header, count: int | None = None) -> Iterator[Frame]:
    """All pictures of a file in order, the frames of an animation composed to whole ones.

    With a ``count`` only so many, and that those behind them are broken, or cut off, is no matter.
    Advancing and reading raise ImageError when the data are truncated or corrupt.
    """
    from cvcli.codecs import decode, tiff, with_cuts

    found = tiff.frames if header.format == "TIFF" else _frames.animation
    part = header if count is None else replace(header, frames=min(count, header.frames))
    with library_errors(header.format, "decode"):
        if count is not None:
            data = _front.front(data, header.format, count)
        if header.frames == 1:
            yield _frames.Frame(header, partial(decode, data, header))
            return
        for frame in islice(found(data, part), count):
            known = frame.metadata and with_cuts(frame.metadata, data, frame.header)
            yield replace(frame, read=_guarded(frame), metadata=known)


def _guarded(frame: Frame) -> Callable[[Pixels], None]:
    def read(out: Pixels) -> None:
        with library_errors(frame.header.format, "decode"):
            frame.read(out)

    return read


def whole(data: bytes, header: Header, most: int, limit: int) -> tuple[int, ImageError | None]:
    """How many of the first ``most`` pictures can be read, and what is wrong with the next one.

    They are read to find out; of more than ``limit`` pixels in all, the rest is taken on trust.
    """
    count, error = _read_through(data, header, None if most == header.frames else most, limit)
    there = _front.held(data, header.format)
    if error is None or there is None:
        return count, error
    # Of what is cut some readers give nothing at all, and some nothing of what is broken.
    most = middle = min(there, most)
    while count < most:
        found = _read_through(data, header, middle, limit)[0]
        count = max(count, found)
        if found < middle:
            most = max(count, found or middle - 1)
        middle = (count + most + 1) // 2
    return count, error


def _read_through(
    data: bytes, header: Header, count: int | None, limit: int
) -> tuple[int, ImageError | None]:
    import numpy as np

    number = pixels = 0
    try:
        for frame in frames(data, header, count):
            spec = frame.header.spec
            pixels += spec.height * spec.width
            if pixels <= limit:
                frame.read(np.empty(spec.shape, spec.dtype))
            number += 1
    except ImageError as error:
        return number, error
    return number, None
