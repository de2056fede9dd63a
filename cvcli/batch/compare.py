"""Whether two image files show the same."""

from __future__ import annotations

import cvcli.codecs as codecs
from cvcli.errors import ImageError


def difference(wanted: bytes, there: bytes) -> str | None:
    """Return in what a file differs from the one that is wanted, None if the pixels are equal."""
    import numpy as np

    one = codecs.probe(wanted, None)
    try:
        other = codecs.probe(there, None)
        if other.frames != one.frames:
            return f"differs: it has {other.frames} pictures instead of {one.frames}"
        if other.spec != one.spec:
            return f"differs: it is {other.spec} instead of {one.spec}"
        if other.orientation != one.orientation:
            return "differs: it is to be shown in another orientation"
        found = np.empty(other.spec.shape, other.spec.dtype)
        codecs.decode(there, other, found)
    except ImageError as error:
        return f"can't be compared: {error}"
    expected = np.empty(one.spec.shape, one.spec.dtype)
    codecs.decode(wanted, one, expected)
    # As bytes, so that a NaN equals itself.
    bits = f"u{expected.dtype.itemsize}"
    unequal = (found.view(bits) != expected.view(bits)).any(axis=2)
    count = int(unequal.sum())
    if not count:
        return None
    y, x = (int(place[0]) for place in np.nonzero(unequal))
    return f"differs in {count} of {unequal.size} pixels, the first at x={x}, y={y}"
