"""The Typer app: a command an operator, made from the registry, and a few of its own."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from inspect import getdoc
from typing import Annotated, Any

import typer

from cvcli.cli.commands import example, operator_command, run_command
from cvcli.cli.console import emit, print_error, say
from cvcli.cli.reports import reports_app
from cvcli.cli.settings import Settings, load_settings, spelled
from cvcli.cli.typed import Command, Group, flowing
from cvcli.cli.usage import Refusal, usage_error
from cvcli.errors import EXIT_INTERRUPTED, EXIT_USAGE, CvcliError
from cvcli.ops import names, operator_named, operators, with_flags

_EPILOG = (
    "Exit codes: 0 all well, 1 some files failed, 2 usage, 66 no input, 130 interrupted, "
    "141 the reader of stdout went away, 143 terminated."
)
_HELP = """Batch image processing on the GPU and on the CPU, with the same bytes.

cvcli OPERATOR [OPTIONS] INPUT... OUTPUT, as in: cvcli resize 640x480 photos/ small/
"""
_CONTEXT = {"help_option_names": ["-h", "--help"]}
_OWN = ("run", "config", "ops", "doctor", "bench", "report")


def run_app(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = _with_values(_asked(sys.argv[1:] if arguments is None else arguments))
    try:
        result = make_app(words, _settings(words))(
            args=words, prog_name="cvcli", standalone_mode=False
        )
    except Refusal as refusal:
        return _refused(refusal, words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except KeyboardInterrupt:
        say("cvcli: interrupted")
        return EXIT_INTERRUPTED
    except CvcliError as error:
        print_error(error)
        return error.exit_code
    except OSError as error:
        if error.filename is None:
            raise
        say(f"cvcli: {os.fsdecode(error.filename)}: {(error.strerror or str(error)).lower()}")
        return EXIT_USAGE
    return result or 0


def _asked(words: list[str]) -> list[str]:
    """Return ``help COMMAND`` as it is asked for with an option."""
    return [*words[1:], "--help"] if words[:1] == ["help"] else words


def _refused(refusal: Any, words: list[str]) -> int:
    """Say what is wrong with a command line, or where nothing was given show the help."""
    if type(refusal).__name__ == "NoArgsIsHelpError":
        refusal.show()
    else:
        print_error(usage_error(refusal, words, _OWN))
    return EXIT_USAGE


def _with_values(words: list[str]) -> list[str]:
    """Give options whose value may be left out their value: Typer knows no such options."""
    end = words.index("--") if "--" in words else len(words)
    given = ["--backup=~" if word == "--backup" else word for word in words[:end]]
    if words and words[0].replace("-", "_") in names():
        given = with_flags(given, operator_named(words[0]).parameters)
    return given + words[end:]


def _commands() -> list[str]:
    return [name.replace("_", "-") for name in names()]


def _settings(words: list[str]) -> Settings:
    """Return what the environment and a file set, if the command heeds it."""
    first = words[0] if words else ""
    heeds = first in ("run", "config") or first.replace("-", "_") in names()
    asks = "--help" in words or "-h" in words
    return load_settings(words) if heeds and not asks else Settings()


def make_app(words: list[str], settings: Settings | None = None) -> typer.Typer:
    """Return the app; where the first word names a command over files, only that is built."""
    settings = settings or Settings()
    commands = [*_commands(), *names(), "run"]
    app = typer.Typer(
        name="cvcli",
        cls=Group,
        help=_HELP,
        epilog=_EPILOG,
        context_settings=_CONTEXT | {"default_map": dict.fromkeys(commands, settings.values)},
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None if not _wants_help(words) else "rich",
    )
    app.callback()(_root)
    first = words[0] if words else ""
    known = first.replace("-", "_") in names()
    for operator in [operator_named(first)] if known else [] if first == "run" else operators():
        command = app.command(
            operator.command,
            cls=Command,
            help=flowing(operator.doc),
            rich_help_panel="Operators",
            no_args_is_help=True,
            epilog=f"Example: cvcli {example(operator)}",
        )
        command(operator_command(operator))
    if known:
        return app
    run = run_command(settings.presets)
    app.command("run", cls=Command, help=flowing(getdoc(run) or ""), no_args_is_help=True)(run)
    if first == "run":
        return app
    from cvcli.cli import bench, doctor

    app.command("config", cls=Command)(config_command(settings))
    app.command("ops", cls=Command)(list_operators)
    app.command("doctor", cls=Command)(doctor.doctor)
    app.command("bench", cls=Command, help=flowing(getdoc(bench.bench) or ""))(bench.bench)
    app.add_typer(reports_app(), name="report")
    return app


def config_command(settings: Settings) -> Callable[[], None]:
    """Return the command that shows what is set outside the command line."""

    def config() -> None:
        """Show options and presets that the environment or a project's file sets, and where."""
        lines = [
            f"{spelled(name)} = {json.dumps(value)}  ({settings.origins[name]})"
            for name, value in settings.values.items()
        ]
        lines += [f":{name} = {json.dumps(chain)}" for name, chain in settings.presets.items()]
        emit("\n".join(lines or ["nothing is set"]) + "\n")

    return config


def _wants_help(words: list[str]) -> bool:
    return not words or "--help" in words or "-h" in words or len(words) == 1


def _version(value: bool) -> None:
    if value:
        from cvcli import __version__

        print(f"cvcli {__version__}")
        raise typer.Exit()


def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version.", callback=_version)
    ] = False,
) -> None:
    """Batch image processing on the GPU and on the CPU, with the same bytes."""


def list_operators(
    as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[OPERATOR]",
            help="One operator, in full.",
            autocompletion=lambda: [name.replace("_", "-") for name in names()],
        ),
    ] = None,
) -> None:
    """List the operators, or describe one."""
    chosen = operators() if name is None else [operator_named(name)]
    if as_json:
        emit(json.dumps([_described(operator) for operator in chosen], indent=1) + "\n")
        return
    width = max(len(operator.command) for operator in chosen)
    brief = [f"{operator.command:{width}}  {operator.summary}" for operator in chosen]
    emit("\n".join(brief if name is None else map(_full, chosen)) + "\n")


def _described(operator: Any) -> dict[str, Any]:
    return {
        "name": operator.command,
        "description": operator.doc,
        "parameters": [
            {
                "option": p.option,
                "kind": p.kind,
                "help": p.param.help,
                "required": p.required,
                "default": p.default,
                "choices": list(p.choices),
                "min": p.param.min,
                "max": p.param.max,
                "unit": p.param.unit,
            }
            for p in operator.parameters
        ],
    }


def _full(operator: Any) -> str:
    lines = [f"{operator.command}: {operator.doc}", ""]
    for p in operator.parameters:
        default = f"default: {p.spelled_default}" if p.spelled_default else "optional"
        default = "required" if p.required else default
        choices = f" [{'|'.join(p.choices)}]" if p.choices else ""
        limits = f"{p.param.limits}; " if p.param.limits else ""
        lines.append(f"  {p.option}{choices}  {p.param.help} ({limits}{default})")
    lines.append(f"\nExample: cvcli {example(operator)}")
    return "\n".join(lines)
