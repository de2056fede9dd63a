"""Where a file is: a path on this machine, or the address of one in a store, such as ``s3://…``."""

# ruff: noqa: PTH100, PTH118

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# For them ? starts a query and is no pattern.
_WEB = ("http", "https")
_HERE = ("file", "local")


@dataclass(frozen=True, slots=True)
class Url:
    """An address, kept as it was spelled: ``a//b`` and ``a/b`` are two keys of a bucket."""

    text: str

    def __str__(self) -> str:
        return self.text

    def __fspath__(self) -> str:
        return self.text

    @property
    def name(self) -> str:
        """The last part of the address, without a query."""
        return name_of(self.text)

    @property
    def suffix(self) -> str:
        """The suffix of the name, with its dot."""
        return os.path.splitext(self.name)[1]  # noqa: PTH122

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return os.path.splitext(self.name)[0]  # noqa: PTH122

    @property
    def parent(self) -> Url:
        """The folder that it is in."""
        return Url(parent_of(self.text))

    def with_name(self, name: str) -> Url:
        """Return what lies beside it under another name."""
        return Url(f"{parent_of(self.text)}/{name}")


Place = Path | Url


def scheme_of(text: str) -> str | None:
    """Return what stands before ``://``, None for a path."""
    found = _SCHEME.match(text) if "://" in text else None
    return None if found is None else found[1].lower()


def is_web(text: str) -> bool:
    """Return whether an address is one of the web, where a file can be read and no more."""
    return scheme_of(text) in _WEB


def place(text: str | os.PathLike[str]) -> Place:
    """Return the place that a text names; ``file://`` is for what lies on this machine too."""
    if type(text) is str and "://" not in text:
        return Path(text)
    if isinstance(text, Path | Url):
        return text
    text = os.fspath(text)
    scheme = scheme_of(text)
    if scheme in _HERE:
        return Path(unquote(text[len(scheme) + 3 :].removeprefix("localhost")))
    return Path(text) if scheme is None else Url(text)


def parent_of(text: str) -> str:
    """Return the folder that an address is in; what has none is its own."""
    head = text[: text.index("://") + 3]
    above, slash, _ = _path_of(text).rstrip("/").rpartition("/")
    return head + above if slash else text


def name_of(text: str) -> str:
    """Return the last part of a path or an address."""
    if scheme_of(text) is None:
        return os.path.basename(text)  # noqa: PTH119
    return _path_of(text).rstrip("/").rpartition("/")[2]


def _path_of(text: str) -> str:
    path = text[text.index("://") + 3 :]
    return re.split(r"[?#]", path, maxsplit=1)[0] if is_web(text) else path


def joined(folder: str, relative: str) -> str:
    """Return a place below a folder."""
    if "://" not in folder or scheme_of(folder) is None:
        return os.path.join(folder, relative)
    return f"{folder.rstrip('/')}/{relative.replace(os.sep, '/')}"


def below(text: str, base: str) -> str | None:
    """Return where a file lies below a folder, with ``/``; None where it doesn't."""
    if scheme_of(base) is not None:
        base = base.rstrip("/")
        same = text.rstrip("/") == base
        return "" if same else text[len(base) + 1 :] if text.startswith(f"{base}/") else None
    if scheme_of(text) is not None:
        return None
    relative = os.path.relpath(os.path.abspath(text), os.path.abspath(base))
    return None if relative.startswith(os.pardir) else relative
