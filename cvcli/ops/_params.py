"""Descriptors of operator parameters: one reading and one range check for CLI, chain and Python."""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NewType, Union, get_args, get_origin

from cvcli.errors import ParameterError
from cvcli.ops._readers import READERS

# A sample value: a number in the image's own units, or a share of white such as "50%".
Level = Union[float, str]  # noqa: UP007
# One value for every channel, or one a channel; each a `Level`.
Color = Union[float, str, Sequence[Union[float, str]]]  # noqa: UP007
# Numbers of channels, 1 to 4 of them.
Order = Union[int, str, Sequence[int]]  # noqa: UP007
# How an image goes on outside itself.
Border = Literal["constant", "replicate", "reflect", "reflect101", "wrap"]
# A size as text: see `cvcli.ops._geometry`.
Geometry = NewType("Geometry", str)
# One number or many, rows of a matrix in turn; as text with "," between them, rows with ";".
Numbers = Union[float, str, Sequence[Union[float, Sequence[float]]]]  # noqa: UP007
# Odd lengths of a window: one for both axes, or width and height.
Window = Union[int, str, tuple[int, int]]  # noqa: UP007
# Rows of numbers; as text rows are parted by semicolons, numbers by commas.
Rows = Union[str, Sequence[Sequence[float]]]  # noqa: UP007

_KINDS: dict[Any, str] = {
    int: "integer",
    float: "number",
    bool: "flag",
    Level: "level",
    Color: "color",
    Order: "order",
    Geometry: "geometry",
    Numbers: "numbers",
    Window: "window",
    Rows: "rows",
}


@dataclass(frozen=True)
class Param:
    """What a parameter means, its inclusive range and step, and its unit.

    In a chain and on the command line a ``positional`` one is given as a word without an option;
    there is at most one, and it is optional. A command that gets an option which excludes it
    takes none.
    """

    help: str
    min: float | None = None
    max: float | None = None
    multiple: float | None = None
    unit: str = ""
    positional: bool = False

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

    ``kind`` is ``integer``, ``number``, ``flag``, ``choice``, ``level``, ``color``, ``order``,
    ``geometry``, ``numbers``, ``window`` or ``rows``.
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
        """How it is named on the command line and in a chain."""
        return self.name.upper() if self.param.positional else "--" + self.name.replace("_", "-")

    @property
    def spelled_default(self) -> str | None:
        """The default as it is typed; None where there is none."""
        if isinstance(self.default, bool):
            return "on" if self.default else "off"
        return None if self.default is None else str(self.default).removesuffix(".0")

    def check(self, value: Any) -> Any:
        """Return a value, given as text or as itself, checked and in its final type."""
        if value is None and self.optional:
            return None
        value = READERS[self.kind](self, value)
        if self.kind in ("integer", "number"):
            self.check_range(value)
        return value

    def fail(self, constraint: str, value: object, tip: str | None = None) -> ParameterError:
        text = f"{self.operator}: {self.name} must be {constraint}, got {value!r}"
        return ParameterError(text, tip)

    def check_range(self, value: float) -> None:
        """Raise `ParameterError` for a number outside the range."""
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
    optional = get_origin(base) in (Union, types.UnionType) and type(None) in get_args(base)
    if optional:
        base = Union[tuple(arg for arg in get_args(base) if arg is not type(None))]  # noqa: UP007
    if get_origin(base) is Literal:
        return "choice", get_args(base), optional, param
    return _KINDS[base], (), optional, param


def channels_of(order: Order) -> tuple[int, ...]:
    """Return an order as the numbers of channels it names."""
    return tuple(map(int, [order] if isinstance(order, int | str) else order))


def numbers_of(values: Numbers) -> tuple[float, ...]:
    """Return checked numbers as a tuple."""
    items = values if isinstance(values, tuple) else (values,)
    return tuple(map(float, items))


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
    image has alpha, and must be a gray one, of equal parts, where the image is gray. Of four
    values those past the image's channels are left out, as CV-CUDA does.
    """
    items: Sequence[Level] = [values] if isinstance(values, int | float | str) else values
    numbers = [level(item, top) for item in items]
    if len(numbers) == 3 and channels < 3:
        if len(set(numbers)) > 1:
            shown = ",".join(map(str, items))
            raise ParameterError(
                f"value must be a gray where the image is gray, got {shown}",
                tip="give one number, or make the image colour first: cvtcolor --code gray2rgb",
            )
        numbers = numbers[:1]
    elif len(numbers) == 1:
        numbers *= channels
    if len(numbers) == channels - 1 and channels in (2, 4):
        numbers.append(top)
    if len(numbers) < channels:
        raise ParameterError(
            f"value must have 1 number, or one a channel ({channels}), got {len(numbers)}"
        )
    return tuple(numbers[:channels])
