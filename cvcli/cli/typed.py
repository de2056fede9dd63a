"""Commands as people type them: flags with a value, or nothing at all behind the command."""

from __future__ import annotations

import re
from typing import Any

from typer.core import TyperCommand, TyperGroup

from cvcli.cli.console import say
from cvcli.errors import UsageError
from cvcli.ops import flag_value

# What Typer adds to a command by itself, which ends it.
_ENDING = "help"


class Command(TyperCommand):
    """A command whose flags may be taken back and be given on or off, as in ``--quiet=off``.

    Where it needs words and gets none, it says which.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for flag in filter(_is_flag, self.params):
            # The last one typed counts, and it goes before what a project's file sets.
            flag.secondary_opts = [opposite(_long(flag))]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words, each flag brought to a form that Typer knows."""
        if not args and self.no_args_is_help and not ctx.resilient_parsing:
            self._refuse_nothing(ctx)
        if ctx.resilient_parsing:
            # A shell that asks what may follow is told of each flag once.
            for flag in filter(_is_flag, self.params):
                flag.secondary_opts = []
        flags = {_long(flag): flag for flag in filter(_is_flag, self.params)}
        end = args.index("--") if "--" in args else len(args)
        plain = [_plain(word, flags, _path(ctx)) for word in args[:end]]
        return super().parse_args(ctx, plain + args[end:])

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage line, with the options that must be given."""
        needed = [
            f"{_long(param)} {param.metavar}" for param in self.params if _is_needed_option(param)
        ]
        return ["[OPTIONS]", *needed, *map(_shown, _arguments(self))]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without the opposites of flags and Python's names of types."""
        for param in self.get_params(ctx):
            _show_plainly(param)
        super().format_help(ctx, formatter)

    def _refuse_nothing(self, ctx: Any) -> None:
        say(f"usage: {ctx.command_path} {' '.join(self.collect_usage_pieces(ctx))}")
        words = [_long(param) for param in self.params if _is_needed_option(param)]
        for argument in _arguments(self):
            words += [word for word in _shown(argument).split() if not word.startswith("[")]
        *first, last = words
        listed = f"{', '.join(first)} and {last}" if first else last
        tip = f"{ctx.command_path} --help shows what there is"
        raise UsageError(f"{_path(ctx)}: {listed} must be given", tip=tip)


class Group(TyperGroup):
    """Commands under one name, with the help of `Command`."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, without Python's names of types."""
        for param in self.get_params(ctx):
            _show_plainly(param)
        super().format_help(ctx, formatter)


def flowing(text: str) -> str:
    """Return a description for the help: a paragraph is a line, to be broken as there is room."""
    lines = "\n\n".join(" ".join(part.split("\n")) for part in text.split("\n\n"))
    # Rich takes words in brackets for markup, as in "order[i]".
    return re.sub(r"(\[[a-z#/@][^\[]*?\])", r"\\\1", lines)


def _show_plainly(param: Any) -> None:
    if param.param_type_name == "argument":
        param.display_type = lambda *_: ""
    elif param.is_flag:
        param.secondary_opts, param.metavar = [], ""
    elif param.metavar is None and getattr(param, "min", None) is not None:
        param.metavar = "N"


def opposite(option: str) -> str:
    """Return what takes a flag back: ``--no-quiet`` for ``--quiet``, and the other way round."""
    name = option.removeprefix("--")
    return f"--{name.removeprefix('no-')}" if name.startswith("no-") else f"--no-{name}"


def _path(ctx: Any) -> str:
    """Return a command's name without the program's, such as ``report merge``."""
    return str(ctx.command_path).partition(" ")[2]


def _is_flag(param: Any) -> bool:
    return bool(getattr(param, "is_flag", False)) and param.name != _ENDING


def _is_needed_option(param: Any) -> bool:
    return param.param_type_name == "option" and bool(param.required)


def _arguments(command: Any) -> list[Any]:
    return [param for param in command.params if param.param_type_name == "argument"]


def _shown(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _long(param: Any) -> str:
    return next((name for name in param.opts if name.startswith("--")), str(param.opts[0]))


def _plain(word: str, flags: dict[str, Any], command: str) -> str:
    """Return ``--quiet`` or ``--no-quiet`` for a flag with a value; other words as they are."""
    name, equals, value = word.partition("=")
    if not equals or name not in flags:
        return word
    given = flag_value(value)
    if given is None:
        raise UsageError(f"{command}: {name} must be on or off, got {value!r}")
    return name if given else opposite(name)
