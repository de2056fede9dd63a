"""Glob patterns as shells have them, plus ``**`` for any number of folders."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from cvcli.batch.places import is_web
from cvcli.errors import UsageError


def has_magic(path: str) -> bool:
    """Return whether a path is a pattern."""
    return any(character in path for character in ("*" if is_web(path) else "*?["))


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return what matches a whole relative path; a leading dot is matched only by a dot."""
    parts = pattern.split("/")
    text = ""
    for number, part in enumerate(parts):
        last = number == len(parts) - 1
        if part == "**":
            text += "(?:(?!\\.)[^/]+/)*" + ("(?!\\.)[^/]+" if last else "")
            continue
        guard = "" if part.startswith(".") else "(?!\\.)"
        text += guard + _segment(part) + ("" if last else "/")
    try:
        return re.compile(text, re.DOTALL)
    except re.error:
        raise UsageError(f"{pattern}: is no pattern that can be understood") from None


def _segment(part: str) -> str:
    """Return one path part as a regular expression; a [ that is never closed is itself."""
    text, at = "", 0
    while at < len(part):
        character, at = part[at], at + 1
        end = part.find("]", at + 1 + (part[at : at + 1] in ("!", "^"))) if character == "[" else -1
        if character == "*":
            text += "[^/]*"
        elif character == "?":
            text += "[^/]"
        elif end >= 0:
            inside = part[at:end].replace("\\", "\\\\").replace("[", "\\[")
            text += f"[^{inside[1:]}]" if inside[0] in "!^" else f"[{inside}]"
            at = end + 1
        else:
            text += re.escape(character)
    return text


class Filter:
    """What ``--include`` and ``--exclude`` leave of a folder.

    A pattern with a ``/`` is for the path below the folder that was named, another for the name.
    """

    def __init__(self, include: Iterable[str] = (), exclude: Iterable[str] = ()) -> None:
        self._include = tuple(map(_Rule, include))
        self._exclude = tuple(map(_Rule, exclude))

    @property
    def chooses(self) -> bool:
        """Whether files were asked for by pattern, and not only by being images."""
        return bool(self._include)

    def takes(self, relative: str) -> bool:
        """Return whether a file may be an input."""
        if self._include and not any(rule.matches(relative) for rule in self._include):
            return False
        return not self.prunes(relative)

    def prunes(self, relative: str) -> bool:
        """Return whether a file or a whole folder is left out."""
        return any(rule.matches(relative) for rule in self._exclude)


class _Rule:
    def __init__(self, pattern: str) -> None:
        plain = pattern.strip("/")
        if not plain:
            raise UsageError(f"{pattern or 'an empty text'}: is no pattern")
        self._anchored = "/" in plain or pattern.startswith("/")
        self._pattern = compiled(plain)

    def matches(self, relative: str) -> bool:
        text = relative if self._anchored else relative.rpartition("/")[2]
        return self._pattern.fullmatch(text) is not None
