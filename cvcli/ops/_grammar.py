"""The text of a chain: steps between ``|``, options spelled as on the command line.

``flip --axis -1 | crop --width 640 --height 480 --gravity center | invert``. In a file each line
is a step too, and ``#`` starts a comment.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Sequence
from pathlib import Path

from cvcli.core.chain import Chain, Step
from cvcli.errors import UsageError
from cvcli.ops._operator import Operator
from cvcli.ops._params import Parameter
from cvcli.ops._readers import FLAG_WORDS
from cvcli.ops._registry import operator_named


def load_chain(text: str) -> Chain:
    """Return the chain of a text, or with ``@file`` of a file; raise `UsageError`."""
    if not text.startswith("@"):
        return parse_chain(text)
    path = Path(text[1:])
    try:
        steps = parse_chain(path.read_text(encoding="utf-8-sig"), str(path)).steps
        return Chain(steps, origin=path)
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: must be UTF-8 text") from None


def parse_chain(text: str, where: str | None = None) -> Chain:
    """Return the chain that a text spells; ``where`` names the file in errors."""
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            steps += [parse_step(words) for words in _steps(line)]
        except UsageError as error:
            if where is not None:
                raise type(error)(f"{where}:{number}: {error}", error.tip) from None
            raise
    if not steps:
        raise UsageError(f"{where or 'chain'}: must hold at least one step")
    return Chain(tuple(steps))


def parse_step(words: list[str]) -> Step:
    """Return the step of ``[operator, option, value, ...]``."""
    operator = operator_named(words[0])
    given: dict[str, str] = {}
    rest = iter(with_flags(words[1:], operator.parameters))
    for word in rest:
        name, equals, value = word.partition("=")
        bare = None if word.startswith("-") else operator.positional
        parameter = bare.name if bare else _parameter_named(operator, name)
        if parameter in given:
            raise UsageError(f"{operator.command}: {parameter if bare else name} is given twice")
        try:
            given[parameter] = word if bare else value if equals else next(rest)
        except StopIteration:
            raise UsageError(f"{operator.command}: {name} must have a value") from None
    return operator.step(**given)


def with_flags(words: Sequence[str], parameters: Sequence[Parameter]) -> list[str]:
    """Return words in which each flag has a value: ``--expand`` is on and ``--no-expand`` off."""
    flags = {p.option: "on" for p in parameters if p.kind == "flag"}
    flags |= {f"--no-{option[2:]}": "off" for option in flags}
    given = []
    for word, following in zip(words, [*words[1:], ""], strict=False):
        value = flags.get(word)
        if value == "off":
            word = f"--{word.removeprefix('--no-')}=off"
        elif value == "on" and following.lower() not in FLAG_WORDS:
            word = f"{word}=on"
        given.append(word)
    return given


def _parameter_named(operator: Operator, option: str) -> str:
    options = {parameter.option: parameter.name for parameter in operator.parameters}
    if option in options:
        return options[option]
    near = difflib.get_close_matches(option, options, n=1)
    listed = f"its options are {', '.join(options)}" if options else "it takes none"
    raise UsageError(
        f"{operator.command}: there is no option {option!r}",
        tip=f"did you mean {near[0]}?" if near else listed,
    )


def _steps(line: str) -> list[list[str]]:
    """Return the words of each step of a line; a | at its end joins it to the next."""
    pieces = _split(line)
    if not pieces[-1].strip():
        pieces.pop()
    try:
        steps = [shlex.split(piece) for piece in pieces]
    except ValueError as error:
        raise UsageError(f"chain: {str(error).lower()} in {line!r}") from None
    if not all(steps):
        raise UsageError("chain: there is no step between two |")
    return steps


def _split(line: str) -> list[str]:
    """Cut a line at each | outside quotes, and end it at a # that starts a word."""
    pieces, quote, before = [""], "", " "
    for character in line:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "#" and before.isspace():
            break
        elif character == "|":
            pieces.append("")
            before = " "
            continue
        pieces[-1] += character
        before = character
    return pieces
