"""The text of a chain: steps between ``|``, options spelled as on the command line.

``flip --axis -1 | crop --width 640 --height 480 --gravity center | invert``. In a file each line
is a step too, and ``#`` starts a comment. A step ``:NAME`` stands for the steps of a preset.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from cvcli.core.chain import Chain, Step
from cvcli.errors import ParameterError, UsageError
from cvcli.ops._operator import Operator
from cvcli.ops._params import Parameter
from cvcli.ops._readers import FLAG_WORDS
from cvcli.ops._registry import names, operator_named

_NO_PRESETS: Mapping[str, str] = MappingProxyType({})
_PRESET = "preset "
# What parts commands elsewhere, and is no value of any parameter.
_NO_BARS = ("+", ";", ",", "&", "&&", "->", "=>")


def load_chain(text: str, presets: Mapping[str, str] = _NO_PRESETS) -> Chain:
    """Return the chain of a text, or with ``@file`` of a file; raise `UsageError`."""
    if not text.startswith("@"):
        return parse_chain(text, presets=presets)
    path = Path(text[1:])
    try:
        steps = parse_chain(path.read_text(encoding="utf-8-sig"), str(path), presets).steps
        return Chain(steps, origin=path)
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({str(error.strerror).lower()})") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: must be UTF-8 text") from None


def parse_chain(
    text: str, where: str | None = None, presets: Mapping[str, str] = _NO_PRESETS
) -> Chain:
    """Return the chain that a text spells, in which a step ``:NAME`` stands for a preset's.

    ``where`` names the file in errors, ``presets`` are chains by name. Raises `UsageError`.
    """
    if not isinstance(text, str):
        raise UsageError(f"chain: must be a text, got {type(text).__name__}")
    return Chain(tuple(_parsed(text, where, presets, ())))


def _parsed(
    text: str, where: str | None, presets: Mapping[str, str], within: tuple[str, ...]
) -> list[Step]:
    steps: list[Step] = []
    lines = text.splitlines()
    waits = 0
    for number, line in enumerate(lines, 1):
        try:
            words, joined = _steps(line)
            for step in words:
                steps += _step(step, presets, within)
        except UsageError as error:
            raise _placed(error, where, number, lines) from None
        waits = number if joined else 0 if words else waits
    if waits:
        raise _placed(UsageError("chain: there is no step after the last |"), where, waits, lines)
    if not steps:
        raise UsageError(f"{where or 'chain'}: must hold at least one step")
    return steps


def _placed(error: UsageError, where: str | None, number: int, lines: list[str]) -> UsageError:
    """Return an error with the place in front that it is about."""
    if where is None or (where.startswith(_PRESET) and str(error).startswith(_PRESET)):
        return error
    text = str(error).removeprefix("chain: ")
    line = f":{number}" if len(lines) > 1 or not where.startswith(_PRESET) else ""
    return type(error)(f"{where}{line}: {text}", error.tip)


def _step(words: list[str], presets: Mapping[str, str], within: tuple[str, ...]) -> list[Step]:
    """Return the step of some words, or the steps of the preset that they name."""
    word, *options = words
    if not word.startswith(":"):
        try:
            return [parse_step(words)]
        except UsageError as error:
            if word in presets and word.replace("-", "_") not in names():
                raise UsageError(str(error), tip=f"did you mean :{word}?") from None
            raise
    name = word[1:]
    if name not in presets:
        raise UsageError(f"there is no preset {name!r}", tip=_preset_tip(name, presets))
    if options:
        raise UsageError(f"{_PRESET}{name}: takes no options, got {' '.join(options)!r}")
    if name in within:
        raise UsageError(f"{_PRESET}{name}: holds itself")
    return _parsed(presets[name], f"{_PRESET}{name}", presets, (*within, name))


def _preset_tip(name: str, presets: Mapping[str, str]) -> str:
    near = difflib.get_close_matches(name, presets, 1)
    if near:
        return f"did you mean :{near[0]}?"
    if name.replace("-", "_") in names():
        return f"did you mean {name}, which is an operator?"
    if presets:
        return f"the presets are {', '.join(f':{one}' for one in presets)}"
    return "presets stand in [presets] of cvcli.toml or [tool.cvcli.presets] of pyproject.toml"


def parse_step(words: list[str]) -> Step:
    """Return the step of ``[operator, option, value, ...]``."""
    operator = operator_named(words[0])
    if other := next((word for word in words[1:] if word in _NO_BARS), None):
        raise UsageError(f"chain: steps must be parted by |, got {other!r}")
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
    meant = f"did you mean {near[0]}?" if near else value_tip(operator, option)
    raise UsageError(f"{operator.command}: there is no option {option!r}", tip=meant or listed)


def value_tip(operator: Operator, word: str) -> str | None:
    """Return a tip on a word that can be the value of what an operator must be given.

    That is so in ``rotate 90``, where ``--angle`` is left out.
    """
    for p in operator.parameters:
        if p.required and suits(p, word):
            return f"did you mean {p.option} {word}?"
    return None


def suits(parameter: Parameter, word: str) -> bool:
    """Return whether a word can be a parameter's value."""
    try:
        parameter.check(word)
    except ParameterError:
        return False
    return True


def _steps(line: str) -> tuple[list[list[str]], bool]:
    """Return the words of each step of a line, and whether a | at its end joins it to the next."""
    pieces = _split(line)
    joined = len(pieces) > 1 and not pieces[-1].strip()
    if not pieces[-1].strip():
        pieces.pop()
    if pieces and not pieces[0].strip():
        raise UsageError("chain: there is no step before the first |")
    try:
        steps = [shlex.split(piece) for piece in pieces]
    except ValueError as error:
        raise UsageError(f"chain: {str(error).lower()} in {line!r}") from None
    if not all(steps):
        raise UsageError("chain: there is no step between two |")
    return steps, joined


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
