"""Commands over many files: one an operator, and ``run`` for chains."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from cvcli.cli.meant import quote_chain
from cvcli.cli.options import Paths, Wishes, parameters
from cvcli.cli.typed import flowing
from cvcli.core.chain import Chain
from cvcli.errors import UsageError
from cvcli.ops import Operator, load_chain, names, operator_named, suits
from cvcli.ops._params import Parameter

_WIDEST_METAVAR = 30


def _run(chain: Chain, paths: list[str] | None, options: dict[str, Any]) -> None:
    from cvcli.cli.execute import carry_out

    raise typer.Exit(carry_out(chain, paths or [], Wishes(**options)))


def operator_command(operator: Operator) -> Callable[..., None]:
    """Return the command of one operator, for Typer to read its signature."""

    bare = operator.positional
    named = [p for p in operator.parameters if p is not bare]

    def command(paths: list[str] | None, **options: Any) -> None:
        values = {p.name: options.pop(p.name) for p in named}
        given = {name: value for name, value in values.items() if value is not None}
        if bare is not None and paths:
            excluded = _is_excluded(bare, given, operator.exclusive)
            if not excluded and os.path.lexists(paths[0]) and not suits(bare, paths[0]):
                raise _lacking(operator, bare)
            if not excluded or _is_meant(bare, paths[0]):
                given[bare.name], *paths = paths
        _run(Chain((operator.step(**given),)), paths, options)

    options = [_option(p) for p in named]
    return _signed(command, options if bare is None else [_paths_after(bare), *options])


def _lacking(operator: Operator, bare: Parameter) -> UsageError:
    instead = [a if b == bare.name else b for a, b in operator.exclusive if bare.name in (a, b)]
    options = " or ".join(f"--{name.replace('_', '-')}" for name in instead)
    return UsageError(
        f"{operator.command}: {bare.option} must be given in front of the inputs, or {options}",
        tip=f"for example: cvcli {example(operator)}",
    )


def example(operator: Operator) -> str:
    """Return a command line that works as it stands."""
    bare = operator.positional
    short = (case for case in operator.cases if bare is not None and bare.name in case)
    case = next(short, operator.cases[0] if operator.cases else {})
    return f"{operator.step(**case)} in/ out/"


def _is_excluded(
    bare: Parameter, given: dict[str, Any], exclusive: tuple[tuple[str, str], ...]
) -> bool:
    return any(bare.name in pair and (pair[0] in given or pair[1] in given) for pair in exclusive)


def _is_meant(bare: Parameter, word: str) -> bool:
    """Return whether a word can be nothing but the operator's own, whatever options say."""
    return suits(bare, word) and not os.path.lexists(word)


def _paths_after(bare: Parameter) -> inspect.Parameter:
    """Return the paths with the operator's own word before them, which some options replace."""
    word = bare.name.upper()
    argument = typer.Argument(
        metavar=f"[{word}] INPUT... OUTPUT",
        show_default=False,
        help=f"{word}: {bare.param.help} Left out where options say the same. Then image files "
        "and folders, and where the results go.",
    )
    return inspect.Parameter(
        "paths",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[list[str] | None, argument],
    )


def run_command(presets: Mapping[str, str]) -> Callable[..., None]:
    """Return the command that runs a chain, in which presets may stand."""

    def run(chain: str, paths: list[str] | None, **options: Any) -> None:
        """Run a chain of operators in one pass.

        CHAIN holds steps between |, with the options of the commands, as in
        "flip --axis -1 | crop --width 640 --height 480 --gravity center | invert"; or @FILE names
        a file with a step on each line and # comments. A step :NAME stands for the preset of
        that name, see "cvcli config".
        """
        _refuse_words(chain, paths or [])
        _run(load_chain(chain, presets), paths, options)

    chain = inspect.Parameter(
        "chain",
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        annotation=Annotated[
            str, typer.Argument(metavar="CHAIN", help="Steps between |, or @FILE, or :PRESET.")
        ],
    )
    return _signed(run, [chain])


def _refuse_words(chain: str, paths: list[str]) -> None:
    """Refuse a first path that can be nothing but a part of the chain, which lacks its quotes."""
    word = paths[0] if len(paths) > 1 else ""
    if not word.strip() or os.path.lexists(word):
        return
    known, last = names(), chain.rpartition("|")[2].strip().replace("-", "_")
    if word.split()[0].replace("-", "_") in known:
        meant = f"{chain} | {word}"
    else:
        bare = operator_named(last).positional if last in known else None
        if bare is None or not _is_meant(bare, word):
            return
        meant = f"{chain} {word}"
    message, tip = quote_chain(meant)
    raise UsageError(f"run: {message}", tip)


def _signed(function: Callable[..., None], extra: list[inspect.Parameter]) -> Callable[..., None]:
    """Give a function the signature Typer is to see: its own parameters and the common ones."""
    paths = inspect.Parameter(
        "paths", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Paths
    )
    arguments = [p for p in extra if p.name in ("chain", "paths")]
    if not any(p.name == "paths" for p in arguments):
        arguments.append(paths)
    options = [p for p in extra if p.name not in ("chain", "paths")] + parameters()
    every = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in arguments + options]
    signed: Any = function
    signed.__signature__ = inspect.Signature(every)
    signed.__annotations__ = {p.name: p.annotation for p in every}
    return function


def _metavar(p: Parameter) -> tuple[str, str]:
    """Return what stands for a value in the help, and a sentence more where it has no room."""
    choices = "|".join(p.choices)
    if len(choices) > _WIDEST_METAVAR:
        # The columns beside it would be left with no room, and names be broken anywhere.
        return p.name.upper(), f" One of {', '.join(p.choices)}."
    names = {"level": "VALUE|N%", "color": "VALUE,...", "flag": "[on|off]"}
    return choices or names.get(p.kind, p.kind.upper()), ""


def _option(p: Parameter) -> inspect.Parameter:
    metavar, listed = _metavar(p)
    limits = f" ({p.param.limits})" if p.param.limits else ""
    option = typer.Option(
        p.option,
        metavar=metavar,
        help=flowing(p.param.help + limits + listed),
        show_default=p.spelled_default or False,
        autocompletion=lambda: list(p.choices),
        rich_help_panel="Options",
    )
    return inspect.Parameter(
        p.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=... if p.required else None,
        annotation=Annotated[str if p.required else str | None, option],
    )
