"""Whether two image files show the same."""

from __future__ import annotations

from itertools import zip_longest

import cvcli.codecs as codecs
from cvcli.codecs import Frame
from cvcli.errors import ImageError


def difference(wanted: bytes, there: bytes) -> str | None:
    """Return in what a file differs from the one that is wanted, None if the pixels are equal."""
    one = codecs.probe(wanted, None)
    try:
        other = codecs.probe(there, None)
        if other.frames != one.frames:
            return f"differs: it has {other.frames} pictures instead of {one.frames}"
        if other.orientation != one.orientation:
            return "differs: it is to be shown in another orientation"
        pairs = zip_longest(codecs.frames(wanted, one), codecs.frames(there, other))
        for number, (mine, theirs) in enumerate(pairs):
            found = _difference(mine, theirs)
            if found is not None:
                return found if one.frames == 1 else f"frame {number} {found}"
    except ImageError as error:
        return f"can't be compared: {error}"
    return None


def _difference(one: Frame, other: Frame) -> str | None:
    import numpy as np

    if other.header.spec != one.header.spec:
        return f"differs: it is {other.header.spec} instead of {one.header.spec}"
    if other.duration != one.duration:
        return f"differs: it is shown for {other.duration:g} ms instead of {one.duration:g}"
    expected = np.empty(one.header.spec.shape, one.header.spec.dtype)
    found = np.empty_like(expected)
    one.read(expected)
    other.read(found)
    # As bytes, so that a NaN equals itself.
    bits = f"u{expected.dtype.itemsize}"
    axis = one.header.spec.layout.index("C")
    unequal = (found.view(bits) != expected.view(bits)).any(axis=axis)
    count = int(unequal.sum())
    if not count:
        return None
    y, x = (int(place[0]) for place in np.nonzero(unequal))
    return f"differs in {count} of {unequal.size} pixels, the first at x={x}, y={y}"
