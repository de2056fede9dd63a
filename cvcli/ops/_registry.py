"""Which operators there are: the files of this folder, each imported on first use."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from cvcli.errors import UsageError

if TYPE_CHECKING:
    from cvcli.ops._operator import Operator

# How alike is almost the same, how many letters tell a word, how many guesses are no help.
_ALMOST, _BEGINNING, _MANY = 0.81, 4, 5


@cache
def names() -> tuple[str, ...]:
    """Return every operator's name, sorted."""
    import cvcli.ops

    found = (module.name for module in pkgutil.iter_modules(cvcli.ops.__path__))
    return tuple(sorted(name for name in found if not name.startswith("_")))


@cache
def operator_named(name: str) -> Operator:
    """Return an operator by its name or its command word; raise `UsageError` with a near miss."""
    plain = name.replace("-", "_")
    if plain not in names():
        raise UsageError(f"there is no operator {name!r}", meant_by(name) or "see `cvcli ops`")
    module = importlib.import_module(f"cvcli.ops.{plain}")
    found: Operator = getattr(module, plain)
    return found


def meant_by(word: str, others: Iterable[str] = ()) -> str | None:
    """Return a tip that names the operators, or other words, that a wrong word may stand for.

    They are spelled almost so, else have the word in their name or summary, else are spelled a
    little alike, else take a choice that begins like it, as cvtcolor has for grayscale.
    """
    known = [*(name.replace("_", "-") for name in names()), *others]
    plain = word.lower().replace("_", "-")
    found = (
        difflib.get_close_matches(plain, known, 1, _ALMOST)
        or _with_word(plain)
        or difflib.get_close_matches(plain, known, 1)
        or [one.command for one in operators() if _has_choice(one, plain[:_BEGINNING])]
    )
    if not found or len(found) > _MANY:
        return None
    *first, last = found
    return f"did you mean {', '.join(first)} or {last}?" if first else f"did you mean {last}?"


def _with_word(word: str) -> list[str]:
    if not word.isalpha() or len(word) < _BEGINNING:
        return []
    pattern = re.compile(rf"\b{word}", re.IGNORECASE)
    return [one.command for one in operators() if word in one.name or pattern.search(one.summary)]


def _has_choice(operator: Operator, beginning: str) -> bool:
    choices = (choice for p in operator.parameters for choice in p.choices)
    return len(beginning) == _BEGINNING and any(beginning in choice for choice in choices)


def operators() -> list[Operator]:
    """Return every operator, sorted by name."""
    return [operator_named(name) for name in names()]
