"""What differs from one of fsspec's file systems to the next: packages, errors, times."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from cvcli.errors import CvcliError, UsageError

_NUMBERS: dict[type[OSError], int] = {
    FileNotFoundError: errno.ENOENT,
    PermissionError: errno.EACCES,
    FileExistsError: errno.EEXIST,
    NotADirectoryError: errno.ENOTDIR,
    IsADirectoryError: errno.EISDIR,
}
# What stores call the time of the last change; an object that can't be changed has one of making.
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


def opened(address: str, scheme: str) -> Any:
    """Return fsspec's file system for an address; `UsageError` says what is missing for it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        tip = "pip install 'cvcli[remote]'"
        raise UsageError(f"{address}: fsspec is not installed", tip=tip) from None
    try:
        return url_to_fs(address)[0]
    except ImportError as error:
        package = _package(scheme, error)
        text = f"{address}: {package} is not installed, which {scheme}:// needs"
        raise UsageError(text, tip=f"pip install {package}") from None
    except ValueError as error:
        if str(error).startswith("Protocol not known"):
            tip = "s3://, gs://, az:// and https:// are some that are"
            raise UsageError(f"{address}: {scheme}:// is not known", tip=tip) from None
        raise UsageError(f"{address}: can't be reached ({_words(error)})") from None
    except Exception as error:
        raise UsageError(f"{address}: can't be reached ({_words(error)})") from None


def _package(scheme: str, error: ImportError) -> str:
    from fsspec.registry import known_implementations

    home = known_implementations.get(scheme, {}).get("class", "").partition(".")[0]
    cause = error.__cause__ if isinstance(error.__cause__, ImportError) else error
    return home if home not in ("", "fsspec") else cause.name or "a package"


@contextmanager
def failures() -> Iterator[None]:
    """Make whatever goes wrong an `OSError` with a number, or with a few words."""
    try:
        yield
    except CvcliError:
        raise
    except OSError as error:
        for kind, number in _NUMBERS.items():
            if isinstance(error, kind):
                raise kind(number, "") from error
        raise OSError(_words(error)) from error
    except Exception as error:
        raise OSError(_words(error)) from error


def _words(error: BaseException) -> str:
    told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    lines = told.strip().splitlines()
    text = lines[0] if lines else type(error).__name__
    return text[:1].lower() + text[1:]


def moment_of(info: dict[str, Any]) -> int | None:
    """Return when a file was changed, in nanoseconds since 1970; None if its store can't tell."""
    for name in _TIMES:
        found = info.get(name)
        if isinstance(found, str):
            try:
                found = datetime.fromisoformat(found)
            except ValueError:
                continue
        if isinstance(found, datetime):
            aware = found if found.tzinfo else found.replace(tzinfo=UTC)
            found = aware.timestamp()
        if isinstance(found, int | float) and not isinstance(found, bool):
            return int(found * 1e9)
    return None
