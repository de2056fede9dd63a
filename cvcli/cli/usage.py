"""What Typer finds wrong with a command line, said as everything else is: a sentence and a tip."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

import typer

from cvcli.cli.meant import is_chain, own_options, quote_chain, unquoted_chain, value_tip
from cvcli.cli.options import parameters
from cvcli.errors import UsageError
from cvcli.ops import meant_by, operators

# The class of whatever Typer raises for a bad command line, wherever its version keeps it.
Refusal: Any = typer.BadParameter.__mro__[2]


def usage_error(error: Any, words: Sequence[str], commands: Iterable[str]) -> UsageError:
    """Return a refusal of Typer's in this program's own words; ``words`` are what was typed."""
    context = getattr(error, "ctx", None)
    # Without the program's own name, as in "report merge".
    command = context.command_path.partition(" ")[2] if context is not None else ""
    message, tip = _told(error, words, context, commands)
    return UsageError(f"{command}: {message}" if command else message, tip)


def _told(
    error: Any, words: Sequence[str], context: Any, commands: Iterable[str]
) -> tuple[str, str | None]:
    kind, text = type(error).__name__, error.format_message()
    if kind == "NoSuchOption":
        return _no_such_option(error.option_name, words, context)
    if kind == "MissingParameter" and error.param is not None:
        given = [word for word in words[1:] if not word.startswith("-")]
        tip = value_tip(context.info_name, given[0]) if given else None
        return f"{_named(error.param)} must be given", tip or _help(context)
    if kind == "BadOptionUsage":
        takes = "takes no value" if "does not take" in text else "must have a value"
        return f"{error.option_name} {takes}", _help(context)
    if kind == "BadParameter" and error.param is not None:
        return _bad_value(error, words)
    quoted = re.search(r"'([^']*)'", text)
    if text.startswith("No such command") and quoted:
        return f"there is no command {quoted[1]!r}", _command_tip(quoted[1], context, commands)
    extra = re.fullmatch(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", text)
    if extra:
        return f"takes no more words, got {extra[1]!r}", _help(context)
    return text[:1].lower() + text[1:].rstrip("."), _help(context)


def _command_tip(word: str, context: Any, commands: Iterable[str]) -> str:
    listed = f"{context.command_path} --help lists them"
    if context.parent:
        return _near(word, context.command.commands) or listed
    if is_chain(word):
        return quote_chain(word)[1]
    return meant_by(word, [*commands, "--version"]) or listed


def _no_such_option(option: str, words: Sequence[str], context: Any) -> tuple[str, str | None]:
    command = "" if context is None else context.info_name
    if command == "run":
        chain = unquoted_chain(words[words.index("run") + 1 :], option)
        if chain is not None:
            return quote_chain(chain)
        if any(option == p.option for operator in operators() for p in operator.parameters):
            return f"there is no option {option!r}", "options of a step stand in the chain's quotes"
    # A word such as -axis is read as short options, -a being the first of them.
    whole = next((word for word in words if word.startswith(option) and len(word) > 2), option)
    option = option if option.startswith("--") else whole.partition("=")[0]
    return f"there is no option {option!r}", _option_tip(option, context)


def _option_tip(option: str, context: Any) -> str | None:
    if context is None:
        return None
    names = [
        name for param in context.command.params for name in (*param.opts, *param.secondary_opts)
    ]
    long = [name[2:] for name in names if name.startswith("--")]
    near = difflib.get_close_matches(option.lstrip("-").lower(), long, 1)
    if near and len(option) > 2:
        return f"did you mean --{near[0]}?"
    return value_tip(context.info_name, option) or own_options(context.info_name) or _help(context)


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
