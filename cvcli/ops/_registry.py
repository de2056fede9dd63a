"""Which operators there are: the files of this folder, each imported on first use."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING

from cvcli.errors import UsageError

if TYPE_CHECKING:
    from cvcli.ops._operator import Operator


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
        near = difflib.get_close_matches(plain, names(), n=1)
        tip = f"did you mean {near[0].replace('_', '-')}?" if near else "see `cvcli ops`"
        raise UsageError(f"there is no operator {name!r}", tip=tip)
    module = importlib.import_module(f"cvcli.ops.{plain}")
    found: Operator = getattr(module, plain)
    return found


def operators() -> list[Operator]:
    """Return every operator, sorted by name."""
    return [operator_named(name) for name in names()]
