"""Geometries: sizes as text, such as ``640x480``, ``640x``, ``50%`` or ``640x480>``."""

from __future__ import annotations

import re
from fractions import Fraction

_SIDE, _SHARE = r"0*[1-9]\d{0,7}", r"\d{1,6}(?:\.\d{1,6})?"
_SIZE = re.compile(rf"(?P<w>{_SIDE})?x(?P<h>{_SIDE})?(?P<mode>[<>^!]?)")
_PERCENT = re.compile(rf"(?P<x>{_SHARE})%(?:x(?P<y>{_SHARE})%)?(?P<mode>[<>]?)")


def is_geometry(text: str) -> bool:
    """Return whether a text is a geometry, of sides and shares above 0."""
    if match := _PERCENT.fullmatch(text):
        return Fraction(match["x"]) > 0 and (match["y"] is None or Fraction(match["y"]) > 0)
    size = _SIZE.fullmatch(text)
    return size is not None and (size["w"] or size["h"]) is not None


def size_of(geometry: str, width: int, height: int) -> tuple[int, int]:
    """Return the width and height that a geometry makes of an image's, at least 1 each.

    ``>`` and ``<`` keep the size of what would grow or shrink; ``^`` takes the larger of the two
    factors, so that the result covers the size; ``!`` takes each side as it is given.
    """
    if match := _PERCENT.fullmatch(geometry):
        x, y = Fraction(match["x"]) / 100, Fraction(match["y"] or match["x"]) / 100
        return _times(width, _allowed(x, match["mode"])), _times(height, _allowed(y, match["mode"]))
    match = _SIZE.fullmatch(geometry)
    assert match is not None, "geometries are checked when they are read"
    if match["mode"] == "!":
        return int(match["w"] or width), int(match["h"] or height)
    sides = ((match["w"], width), (match["h"], height))
    factors = [Fraction(int(wanted), side) for wanted, side in sides if wanted]
    factor = max(factors) if match["mode"] == "^" else min(factors)
    factor = _allowed(factor, match["mode"])
    return _times(width, factor), _times(height, factor)


def scaled_size(factor: float, width: int, height: int) -> tuple[int, int]:
    """Return width and height times a factor, at least 1 each."""
    exact = Fraction(repr(factor))
    return _times(width, exact), _times(height, exact)


def _allowed(factor: Fraction, mode: str) -> Fraction:
    grows = factor > 1
    return Fraction(1) if (mode == ">" and grows) or (mode == "<" and not grows) else factor


def _times(side: int, factor: Fraction) -> int:
    """Return the nearest whole number of pixels, of two the larger one."""
    return max(1, int(side * factor + Fraction(1, 2)))
