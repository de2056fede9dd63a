"""Options and presets from the environment and from a project's file.

The command line goes before ``CVCLI_*`` variables, these before the file: ``cvcli.toml``, or the
``[tool.cvcli]`` table of ``pyproject.toml``, nearest up the tree from the working folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

from cvcli.cli.options import Wishes
from cvcli.errors import UsageError
from cvcli.ops import flag_value, operators

# What decides over single runs; a project must not change files by a forgotten line.
_NEVER = {"dry_run", "check", "in_place", "backup", "files_from", "null", "base", "shard"}
_ALIASES = {"threads": "jobs"}
_DECISIONS = ("overwrite", "skip_existing", "if_newer")
_ON_THE_LINE = ("--overwrite", "--skip-existing", "--if-newer", "--in-place", "--check")


def spelled(name: str) -> str:
    """Return the option of a value, as it is typed without its dashes."""
    aliases = {own: alias for alias, own in _ALIASES.items()}
    return aliases.get(name, name).replace("_", "-")


@dataclass(frozen=True, slots=True)
class Settings:
    """Values by option, with where each is from, and the chains that have a name."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    presets: dict[str, str] = field(default_factory=dict)


def load_settings(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> Settings:
    """Return what applies to a command line; `UsageError` names the file or variable at fault."""
    try:
        path, table = _nearest(Path.cwd())
    except FileNotFoundError:
        raise UsageError("the working folder is gone", tip="change to one that exists") from None
    presets = table.pop("presets", {})
    found = [_from_file(path, table), _from_environment(environment)]
    if any(_is_decision(word) for word in words):
        found = [_without_decisions(one) for one in found]
    elif any(name in found[1] for name in _DECISIONS):
        found[0] = _without_decisions(found[0])
    both = found[0] | found[1]
    return Settings(
        {name: value for name, (value, _) in both.items()},
        {name: origin for name, (_, origin) in both.items()},
        _presets(path, presets),
    )


_Found = dict[str, tuple[Any, str]]


def _is_decision(word: str) -> bool:
    name, equals, value = word.partition("=")
    return name in _ON_THE_LINE and (not equals or flag_value(value) is not False)


def _without_decisions(found: _Found) -> _Found:
    return {name: item for name, item in found.items() if name not in _DECISIONS}


def _nearest(folder: Path) -> tuple[Path, dict[str, Any]]:
    for place in (folder, *folder.parents):
        if (own := place / "cvcli.toml").is_file():
            return own, _read(own)
        shared = place / "pyproject.toml"
        if shared.is_file() and b"tool.cvcli" in shared.read_bytes():
            table: dict[str, Any] = _read(shared).get("tool", {}).get("cvcli", {})
            return shared, table
    return Path("cvcli.toml"), {}


def _read(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: can't be read ({str(error.strerror).lower()})") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: must be UTF-8 text") from None
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: {str(error).lower()}") from None


def _kinds() -> dict[str, Any]:
    hints = get_type_hints(Wishes)
    return {entry.name: hints[entry.name] for entry in fields(Wishes) if entry.name not in _NEVER}


def _from_file(path: Path, table: dict[str, Any]) -> _Found:
    kinds, found = _kinds(), {}
    for key, value in table.items():
        name = key.replace("-", "_")
        name = _ALIASES.get(name, name)
        if name not in kinds:
            raise _unknown(f"{path}: there is no option {key!r}", key, kinds)
        found[name] = _checked(value, kinds[name], f"{path}: {key}"), str(path)
    return found


def _unknown(message: str, key: str, kinds: dict[str, Any]) -> UsageError:
    if key.replace("-", "_") in _NEVER:
        return UsageError(message, tip="it can be given on the command line only")
    import difflib

    names = [*(name.replace("_", "-") for name in kinds), *_ALIASES, "presets"]
    near = difflib.get_close_matches(key.replace("_", "-").lower(), names, 1)
    return UsageError(message, tip=f"did you mean {near[0]}?" if near else _elsewhere(key))


def _elsewhere(key: str) -> str | None:
    """Return where a key belongs that is right in another place."""
    if key == "tool":
        return "cvcli.toml holds options without [tool.cvcli] around them"
    plain = key.replace("-", "_")
    if any(plain in (one.name, *(p.name for p in one.parameters)) for one in operators()):
        return "what operators take stands in a preset: cvcli run :NAME"
    return None


def _from_environment(environment: Mapping[str, str]) -> _Found:
    found = {}
    for name, kind in _kinds().items():
        spellings = [name, *(alias for alias, own in _ALIASES.items() if own == name)]
        for spelling in spellings:
            variable = f"CVCLI_{spelling.upper()}"
            text = environment.get(variable)
            if text:
                found[name] = _checked(_of_text(text, kind), kind, variable), variable
    return found


def _base(kind: Any) -> Any:
    """Return the type of a value: an option that may be left out is a union with None."""
    return next((one for one in get_args(kind) if one is not type(None)), kind)


def _of_text(text: str, kind: Any) -> Any:
    base = kind if get_origin(kind) is Literal else _base(kind)
    if base is bool and (given := flag_value(text)) is not None:
        return given
    if base is int and text.strip().lstrip("-").isdigit():
        return int(text)
    return text.split() if get_origin(base) is list else text


def _checked(value: Any, kind: Any, where: str) -> Any:
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if value not in choices:
            raise UsageError(f"{where}: must be one of {', '.join(choices)}, got {value!r}")
        return value
    base = _base(kind)
    wanted, words = {
        bool: (bool, "true or false"),
        int: (int, "a whole number"),
    }.get(base, (str, "a text"))
    if get_origin(base) is list:
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return value
        raise UsageError(f"{where}: must be a list of texts, got {value!r}")
    if wanted is str and type(value) is int:
        return str(value)  # as in `max-memory = 500000000`
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise UsageError(f"{where}: must be {words}, got {value!r}")
    return value


def _presets(path: Path, table: Any) -> dict[str, str]:
    if not isinstance(table, dict):
        raise UsageError(f"{path}: presets must be a table of chains")
    for name, chain in table.items():
        if not isinstance(chain, str):
            raise UsageError(f"{path}: preset {name} must be a text, got {chain!r}")
        if not re.fullmatch(r"[\w.+-]+", name):
            raise UsageError(f"{path}: a preset must be named by one word, got {name!r}")
    return dict(table)
