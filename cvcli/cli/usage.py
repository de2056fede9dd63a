"""What Typer finds wrong with a command line, said as everything else is: a sentence and a tip."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

import typer

from cvcli.cli.options import parameters
from cvcli.errors import UsageError

# The class of whatever Typer raises for a bad command line, wherever its version keeps it.
Refusal: Any = typer.BadParameter.__mro__[2]


def usage_error(error: Any, words: Sequence[str], commands: Iterable[str]) -> UsageError:
    """Return a refusal of Typer's in this program's own words; ``words`` are what was typed."""
    context = getattr(error, "ctx", None)
    command = context.info_name if context is not None and context.parent else None
    message, tip = _told(error, words, context, commands)
    return UsageError(f"{command}: {message}" if command else message, tip)


def _told(
    error: Any, words: Sequence[str], context: Any, commands: Iterable[str]
) -> tuple[str, str | None]:
    kind, text = type(error).__name__, error.format_message()
    if kind == "NoSuchOption":
        return _no_such_option(error.option_name, context)
    if kind == "MissingParameter" and error.param is not None:
        return f"{_named(error.param)} must be given", _help(context)
    if kind == "BadOptionUsage":
        return f"{error.option_name} must have a value", _help(context)
    if kind == "BadParameter" and error.param is not None:
        return _bad_value(error, words)
    quoted = re.search(r"'([^']*)'", text)
    if text.startswith("No such command") and quoted:
        near = _near(quoted[1], commands)
        return f"there is no command {quoted[1]!r}", near or "cvcli --help lists them"
    extra = re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", text)
    if extra:
        return f"takes no more words, got {extra[1]!r}", _help(context)
    return text[:1].lower() + text[1:].rstrip("."), _help(context)


def _no_such_option(option: str, context: Any) -> tuple[str, str | None]:
    options = [name for param in context.command.params for name in param.opts] if context else []
    near = _near(option, [name for name in options if name.startswith("--")])
    return f"there is no option {option!r}", near or _help(context)


def _bad_value(error: Any, words: Sequence[str]) -> tuple[str, str | None]:
    """What a value must be, by our own declaration: Typer's words depend on its version."""
    param, text = error.param, error.message
    name, given = _typed(param, words)
    got = "" if given is None else f", got {given!r}"
    kind, option = _declared(param.name)
    choices = get_args(kind) if get_origin(kind) is Literal else ()
    if choices:
        near = _near(given or "", choices)
        return f"{name} must be one of {', '.join(choices)}{got}", near
    if kind is int or int in get_args(kind):
        least = f" >= {option.min}" if option.min is not None else ""
        return f"{name} must be a whole number{least}{got}", None
    return f"{name}: {text[:1].lower()}{text[1:].rstrip('.')}", None


def _declared(name: str | None) -> tuple[Any, Any]:
    """Return the type and the description of an option of ours; None for another one."""
    found = next((p.annotation for p in parameters() if p.name == name), None)
    kind, option = get_args(found)[:2] if found is not None else (None, None)
    return kind, option


def _named(param: Any) -> str:
    """The name that is shown: an option's longest, an argument's as the usage line has it."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name).strip("{}")
    return str(next((name for name in param.opts if name.startswith("--")), param.opts[0]))


def _typed(param: Any, words: Sequence[str]) -> tuple[str, str | None]:
    """Return the name and the value that were typed for an option; the last one counts."""
    found: tuple[str, str | None] = _named(param), None
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if name in param.opts:
            found = name, value if equals else next(iter(words[place + 1 :]), None)
    return found


def _near(word: str, names: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(word, list(names), 1)
    return f"did you mean {found[0]}?" if found else None


def _help(context: Any) -> str | None:
    return None if context is None else f"{context.command_path} --help shows what there is"
