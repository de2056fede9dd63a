"""Readers of parameters: text or a value in, a checked value of the final type out."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cvcli.ops._geometry import is_geometry

if TYPE_CHECKING:
    from cvcli.ops._params import Parameter


# More words than this make a sentence that nobody reads to its end.
_MANY = 12


def _read_integer(parameter: Parameter, value: Any) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
        if isinstance(number, bool) or int(number) != number:
            raise ValueError
        return int(number)
    except (TypeError, ValueError, OverflowError):
        raise parameter.fail("an integer", value) from None


def _read_number(parameter: Parameter, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise parameter.fail("a number", value) from None
    except OverflowError:
        raise parameter.fail("finite", value) from None
    if number != number or number in (float("inf"), float("-inf")):
        raise parameter.fail("finite", value)
    return number


_ON, _OFF = ("on", "true", "yes", "1"), ("off", "false", "no", "0")
FLAG_WORDS = (*_ON, *_OFF)


def flag_value(word: str) -> bool | None:
    """Return what a word for on or off means, in any case of letters; None for other words."""
    return word.lower() in _ON if word.lower() in FLAG_WORDS else None


def _read_flag(parameter: Parameter, value: Any) -> bool:
    given = flag_value(value) if isinstance(value, str) else value
    if not isinstance(given, bool):
        raise parameter.fail("on or off", value)
    return given


def _read_geometry(parameter: Parameter, value: Any) -> str:
    if not isinstance(value, str) or not is_geometry(value):
        bare = isinstance(value, str) and value.isdecimal()
        tip = f"did you mean {value}x, x{value} or {value}%?" if bare else None
        raise parameter.fail("a size such as 640x480, 640x, x480, 50% or 640x480>", value, tip)
    return value


def _read_choice(parameter: Parameter, value: Any) -> str:
    # A choice of numbers may be given as one, a dtype as NumPy's type of scalars.
    word = value.__name__ if isinstance(value, type) else value
    if (str(word) if isinstance(word, int) else word) not in parameter.choices:
        near = difflib.get_close_matches(str(word), parameter.choices, 1)
        tip, listed = f"did you mean {near[0]}?" if near else None, ", ".join(parameter.choices)
        if len(parameter.choices) > _MANY:
            tip, listed = tip or f"there are {listed}", f"{len(parameter.choices)} words"
        raise parameter.fail(f"one of {listed}", value, tip)
    return str(word)


def _read_level(parameter: Parameter, value: Any) -> float | str:
    if isinstance(value, str) and value.endswith("%"):
        return f"{_read_number(parameter, value[:-1])}%".replace(".0%", "%")
    return _read_number(parameter, value)


def _read_color(parameter: Parameter, value: Any) -> tuple[float | str, ...]:
    items = _items(value)
    if not 1 <= len(items) <= 4:
        raise parameter.fail("1 to 4 values", value)
    return tuple(_read_level(parameter, item) for item in items)


def _read_order(parameter: Parameter, value: Any) -> tuple[int, ...]:
    items = _items(value)
    if not 1 <= len(items) <= 4:
        raise parameter.fail("1 to 4 numbers", value)
    numbers = tuple(_read_integer(parameter, item) for item in items)
    if min(numbers) < 0 or max(numbers) > 3:
        raise parameter.fail("numbers from 0 to 3", value)
    return numbers


def _items(value: Any) -> Sequence[Any]:
    """Return the parts of a list in any spelling; anything else is the one part."""
    if isinstance(value, str):
        return value.split(",")
    return value if isinstance(value, Sequence) else (value,)


def _read_numbers(parameter: Parameter, value: Any) -> tuple[float, ...]:
    if isinstance(value, str):
        value = value.replace(";", ",").split(",")
    elif hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, Sequence):
        value = (value,)
    rows = [item if isinstance(item, list | tuple) else (item,) for item in value]
    numbers = tuple(_read_number(parameter, item) for row in rows for item in row)
    if not numbers:
        raise parameter.fail("at least 1 number", value)
    return numbers


def _read_window(parameter: Parameter, value: Any) -> tuple[int, int]:
    items = value.split(",") if isinstance(value, str) else value
    sides = [items] if not isinstance(items, Sequence) else list(items)
    if not 1 <= len(sides) <= 2:
        raise parameter.fail("one odd length, or a width and a height", value)
    lengths = [_read_integer(parameter, side) for side in sides]
    for length in lengths:
        parameter.check_range(length)
        if length % 2 == 0:
            raise parameter.fail("odd", value)
    return lengths[0], lengths[-1]


def _read_rows(parameter: Parameter, value: Any) -> str:
    """Return rows as text, which hashes and is spelled as the command line takes it."""
    try:
        lines = value.split(";") if isinstance(value, str) else list(value)
        rows = [line.split(",") if isinstance(line, str) else list(line) for line in lines]
    except TypeError:
        raise parameter.fail("rows of numbers", value) from None
    numbers = [[_read_number(parameter, item) for item in row] for row in rows]
    if not numbers or len({len(row) for row in numbers}) != 1 or not numbers[0]:
        raise parameter.fail("rows of equally many numbers", value)
    spelled = (",".join(repr(item).removesuffix(".0") for item in row) for row in numbers)
    return ";".join(spelled)


READERS = {
    "integer": _read_integer,
    "number": _read_number,
    "flag": _read_flag,
    "geometry": _read_geometry,
    "choice": _read_choice,
    "level": _read_level,
    "color": _read_color,
    "order": _read_order,
    "numbers": _read_numbers,
    "window": _read_window,
    "rows": _read_rows,
}
