"""Descriptors of operator parameters: one reading and one range check for CLI, chain and Python."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from cvcli.errors import ParameterError

# A sample value: a number in the image's own units, or a share of white such as "50%".
Level = Union[float, str]  # noqa: UP007
# One value for every channel, or one a channel; each a `Level`.
Color = Union[float, str, Sequence[Union[float, str]]]  # noqa: UP007
# Numbers of channels, 1 to 4 of them.
Order = Union[int, str, Sequence[int]]  # noqa: UP007
# Odd lengths of a window: one for both axes, or width and height.
Window = Union[int, str, tuple[int, int]]  # noqa: UP007
# Rows of numbers; as text rows are parted by semicolons, numbers by commas.
Rows = Union[str, Sequence[Sequence[float]]]  # noqa: UP007


@dataclass(frozen=True)
class Param:
    """What a parameter means, its inclusive range and step, and its unit."""

    help: str
    min: float | None = None
    max: float | None = None
    multiple: float | None = None
    unit: str = ""

    @property
    def limits(self) -> str:
        """Unit and range as the help shows them, such as ``px, >= 0``."""
        parts = [
            self.unit,
            f">= {self.min}" if self.min is not None else "",
            f"<= {self.max}" if self.max is not None else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class Parameter:
    """One parameter of an operator, taken from its signature.

    ``kind`` is ``integer``, ``number``, ``choice``, ``level``, ``color``, ``order``, ``window``
    or ``rows``.
    """

    operator: str
    name: str
    kind: str
    param: Param
    default: Any
    required: bool
    choices: tuple[str, ...] = ()
    optional: bool = False

    @property
    def option(self) -> str:
        return "--" + self.name.replace("_", "-")

    def check(self, value: Any) -> Any:
        """Return a value, given as text or as itself, checked and in its final type."""
        if value is None and self.optional:
            return None
        value = _READERS[self.kind](self, value)
        if self.kind in ("integer", "number"):
            self._check_range(value)
        return value

    def fail(self, constraint: str, value: object) -> ParameterError:
        return ParameterError(f"{self.operator}: {self.name} must be {constraint}, got {value!r}")

    def _check_range(self, value: float) -> None:
        low, high = self.param.min, self.param.max
        # Written so that NaN, which compares false with everything, is refused.
        if low is not None and not value >= low:
            raise self.fail(f">= {low}", value)
        if high is not None and not value <= high:
            raise self.fail(f"<= {high}", value)
        if self.param.multiple is not None and value % self.param.multiple:
            raise self.fail(f"a multiple of {self.param.multiple}", value)


def parameters_of(operator: str, annotations: dict[str, Any], defaults: Any) -> list[Parameter]:
    """Return the parameters of a function whose annotations are resolved."""
    found = []
    for name, annotation in annotations.items():
        default = defaults[name].default
        required = default is defaults[name].empty
        kind, choices, optional, param = _classify(annotation)
        found.append(
            Parameter(
                operator,
                name,
                kind,
                param,
                None if required else default,
                required,
                choices,
                optional,
            )
        )
    return found


def _classify(annotation: Any) -> tuple[str, tuple[str, ...], bool, Param]:
    if get_origin(annotation) is not Annotated:
        raise TypeError(
            f"an operator's parameter must be Annotated[type, Param(...)]: {annotation}"
        )
    base, param = get_args(annotation)[:2]
    for kind, alias in _ALIASES.items():
        if base in (alias, alias | None):
            return kind, (), base != alias, param
    optional = get_origin(base) in (Union, types.UnionType) and type(None) in get_args(base)
    if optional:
        base = next(arg for arg in get_args(base) if arg is not type(None))
    if get_origin(base) is Literal:
        return "choice", get_args(base), optional, param
    return {int: "integer", float: "number"}[base], (), optional, param


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


def _read_choice(parameter: Parameter, value: Any) -> str:
    # A choice of numbers may be given as one.
    if (str(value) if isinstance(value, int) else value) not in parameter.choices:
        raise parameter.fail(f"one of {', '.join(parameter.choices)}", value)
    return str(value)


def _read_level(parameter: Parameter, value: Any) -> float | str:
    if isinstance(value, str) and value.endswith("%"):
        return f"{_read_number(parameter, value[:-1])}%".replace(".0%", "%")
    return _read_number(parameter, value)


def _read_color(parameter: Parameter, value: Any) -> tuple[float | str, ...]:
    if isinstance(value, str):
        value = value.split(",")
    elif not isinstance(value, Sequence):
        value = (value,)
    if not 1 <= len(value) <= 4:
        raise parameter.fail("1 to 4 values", value)
    return tuple(_read_level(parameter, item) for item in value)


def _read_order(parameter: Parameter, value: Any) -> tuple[int, ...]:
    if isinstance(value, str):
        value = value.split(",")
    elif not isinstance(value, Sequence):
        value = (value,)
    if not 1 <= len(value) <= 4:
        raise parameter.fail("1 to 4 numbers", value)
    numbers = tuple(_read_integer(parameter, item) for item in value)
    if min(numbers) < 0 or max(numbers) > 3:
        raise parameter.fail("numbers from 0 to 3", value)
    return numbers


def _read_window(parameter: Parameter, value: Any) -> tuple[int, int]:
    items = value.split(",") if isinstance(value, str) else value
    sides = [items] if not isinstance(items, Sequence) else list(items)
    if not 1 <= len(sides) <= 2:
        raise parameter.fail("one odd length, or a width and a height", value)
    lengths = [_read_integer(parameter, side) for side in sides]
    for length in lengths:
        parameter._check_range(length)
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


_ALIASES = {"level": Level, "color": Color, "order": Order, "window": Window, "rows": Rows}

_READERS = {
    "integer": _read_integer,
    "number": _read_number,
    "choice": _read_choice,
    "level": _read_level,
    "color": _read_color,
    "order": _read_order,
    "window": _read_window,
    "rows": _read_rows,
}


def channels_of(order: Order) -> tuple[int, ...]:
    """Return an order as the numbers of channels it names."""
    return tuple(map(int, [order] if isinstance(order, int | str) else order))


def sides_of(window: Window) -> tuple[int, int]:
    """Return the width and height of a checked window."""
    width, height = map(int, window)  # type: ignore[arg-type]
    return width, height


def rows_of(rows: Rows) -> list[list[float]]:
    """Return checked rows as numbers."""
    return [list(map(float, row.split(","))) for row in str(rows).split(";")]


def level(value: Level, top: float) -> float:
    """Return a level in an image's own units, where ``top`` is white."""
    return float(value[:-1]) / 100 * top if isinstance(value, str) else float(value)


def pixel(values: Color, channels: int, top: float) -> tuple[float, ...]:
    """Return a colour as one value a channel.

    A single value goes to every channel, alpha too; a colour without alpha is opaque where the
    image has alpha; values past the image's channels are left out.
    """
    items: Sequence[Level] = [values] if isinstance(values, int | float | str) else values
    numbers = [level(item, top) for item in items]
    if len(numbers) == 1:
        numbers *= channels
    if len(numbers) == channels - 1 and channels in (2, 4):
        numbers.append(top)
    if len(numbers) < channels:
        raise ParameterError(
            f"value must have 1 number, or one a channel ({channels}), got {len(numbers)}"
        )
    return tuple(numbers[:channels])
