"""What was probably meant by words that can't be taken: the tips of errors."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from itertools import islice

from cvcli import ops
from cvcli.ops import Operator, names, operator_named


def _operator(word: str) -> Operator | None:
    return operator_named(word) if word.replace("-", "_") in names() else None


def is_chain(word: str) -> bool:
    """Return whether a word starts like a chain of several words."""
    first, *more = word.split() or [""]
    return bool(more) and _operator(first) is not None


def unquoted_chain(words: Sequence[str], option: str) -> str | None:
    """Return the chain that was meant where an ``option`` of its operators stands outside of it.

    That is so in ``run flip --axis -1 in out``, without quotes. None for another mistake.
    """
    kinds: dict[str, str] = {}
    meant, known = "", False
    rest = iter(words)
    for word in rest:
        name = word.rpartition("|")[2].split()[:1]
        bare = word.partition("=")[0]
        if not word.startswith("-") and name and name[0].replace("-", "_") in names():
            kinds = {p.option: p.kind for p in operator_named(name[0]).parameters}
            meant += f" | {word}" if meant else word
        elif bare in kinds:
            known |= bare == option
            meant += f" {word}"
            if bare == word and kinds[word] != "flag":
                meant += "".join(f" {shlex.quote(value)}" for value in islice(rest, 1))
        elif meant:
            break
    return meant if known else None


def quote_chain(chain: str) -> tuple[str, str]:
    """Return what is wrong with a chain in several words, and how it is put right."""
    return "the chain must be one word, in quotes", f'for example: cvcli run "{chain}" in/ out/'


def value_tip(command: str, word: str) -> str | None:
    """Return a tip on a word that lacks the option in front, as in ``rotate 90 in out``."""
    operator = _operator(command)
    if operator is None or os.path.lexists(word):
        return None
    return ops.value_tip(operator, word)


def own_options(command: str) -> str | None:
    """Return a tip that lists an operator's options; None where it has none."""
    operator = _operator(command)
    options = (
        [p.option for p in operator.parameters if p.option.startswith("--")] if operator else []
    )
    if not options:
        return None
    return f"its options are {', '.join(options)}; cvcli {command} --help shows more"
