"""Whole files in, whole files out: an output is complete or absent, whenever the process dies.

An output is written under a temporary name beside its target, then renamed over it. There is no
fsync: the promise covers the death of the process, not of the machine.
"""

# System calls go by their own names here, as which of them is made is the point.
# ruff: noqa: PTH100, PTH101, PTH104, PTH105, PTH108, PTH112, PTH114, PTH116, PTH120, PTH123, PTH208

import contextlib
import errno
import os
import platform
import re
import stat
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cvcli.batch.places import Url
from cvcli.errors import ImageError, UsageError

_WORDS = {
    errno.ENOENT: "no such file",
    errno.ENOTDIR: "a parent of it is not a folder",
    errno.EEXIST: "output exists",
}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}


def _host() -> str:
    """Where a process number means something: this machine, and on Linux this namespace of it."""
    names = [platform.node()]
    with contextlib.suppress(OSError):
        names.append(os.fspath(Path("/proc/self/ns/pid").readlink()))
    return f"{zlib.crc32(' '.join(names).encode(errors='replace')):08x}"


# Part of the temporary name, so that a folder shared by several machines is safe.
_HOST = _host()
_TEMPORARY = re.compile(rf"\.cvcli-(\d+)-{_HOST}[0-9a-f]{{16}}\.tmp")

# What this process is writing right now.
_active: set[Path] = set()

Identity = tuple[int, int] | tuple[str, str]
Buffer = bytes | memoryview
EXISTS_TIP = "use --overwrite to replace it, or --skip-existing to leave it"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a file had besides its bytes when it was read; it tells too whether it was changed."""

    mode: int
    mtime_ns: int
    nbytes: int
    identity: Identity

    @classmethod
    def of(cls, status: os.stat_result) -> "Stamp":
        """Return the stamp of a file's status."""
        identity = status.st_dev, status.st_ino
        return cls(stat.S_IMODE(status.st_mode), status.st_mtime_ns, status.st_size, identity)


def reason(error: OSError) -> str:
    """Why a file operation failed, in a few lower-case words and without the path."""
    if error.errno is None:
        return str(error)
    text = _WORDS.get(error.errno) or os.strerror(error.errno)
    return text[:1].lower() + text[1:]


def identity_of(path: str) -> Identity | None:
    """What makes two spellings one file: links are followed unless they are broken."""
    for look in (os.stat, os.lstat):
        try:
            status = look(path)
        except (OSError, ValueError):
            continue
        return status.st_dev, status.st_ino
    return None


def input_trouble(path: str) -> str | None:
    """Why this can't be an input file, or None."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError as error:
        return "broken link" if os.path.islink(path) else reason(error)
    except OSError as error:
        return reason(error)
    except ValueError:
        return "not a possible file name"
    if not stat.S_ISREG(mode):
        return "not a regular file"
    return None if os.access(path, os.R_OK) else "permission denied"


def name_trouble(path: str) -> str | None:
    """Why a path can't even be looked up, such as a name that is too long; None if it can."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        return reason(error)
    except ValueError:
        return "not a possible file name"
    return None


def folder_trouble(folder: str) -> str | None:
    """Why files can't be put into a folder, made if missing; None if nothing speaks against it."""
    nearest = wanted = os.path.abspath(folder)
    if trouble := name_trouble(nearest):
        return trouble
    while not os.path.lexists(nearest) and nearest != os.path.dirname(nearest):
        nearest = os.path.dirname(nearest)
    where = "it" if nearest == wanted else nearest
    if not os.path.isdir(nearest):
        return f"a folder is needed for the outputs, but {where} is not one"
    if not os.access(nearest, os.W_OK | os.X_OK):
        return f"no permission to write into {where}"
    return None


def refuse_odd_file(output: Path | Url) -> None:
    """Refuse an output that is more likely a mistyped file than a folder to be made."""
    if re.fullmatch(r"\.[A-Za-z][A-Za-z0-9]{1,4}", output.suffix):
        raise UsageError(
            f"{output}: {output.suffix} files can't be written",
            tip="choose another suffix; if a folder is meant, make it first",
        )


def read_file(path: Path) -> bytes:
    """All bytes of a file that holds at least one; `ImageError` says why it can't be read."""
    return read_stamped(path)[0]


def read_stamped(path: Path) -> tuple[bytes, Stamp]:
    """Like `read_file`, with the stamp that the file had at its end."""
    try:
        with open(path, "rb") as file:
            data = file.read()
            stamp = Stamp.of(os.fstat(file.fileno()))
    except OSError as error:
        raise ImageError(f"{path}: {reason(error)}") from error
    except (MemoryError, OverflowError) as error:
        raise ImageError(f"{path}: larger than the memory there is") from error
    if not data:
        raise ImageError(f"{path}: empty file")
    return data, stamp


def refuse_changed(path: Path, stamp: Stamp) -> None:
    """Raise `ImageError` if a file is no longer what it was when it was read."""
    try:
        same = Stamp.of(os.stat(path)) == stamp
    except OSError as error:
        raise ImageError(f"{path}: {reason(error)}") from error
    if not same:
        raise ImageError(f"{path}: was changed meanwhile, so it is left as it is")


def keep_backup(path: Path, backup: Path) -> None:
    """Give a file a second name, or where there are no links copy it; `ImageError` if taken."""
    try:
        os.link(path, backup)
    except OSError as error:
        if error.errno == errno.EEXIST and identity_of(str(path)) == identity_of(str(backup)):
            return
        if error.errno not in _NO_LINKS:
            raise ImageError(f"{backup}: {_backup_reason(error)}") from error
        data, stamp = read_stamped(path)
        write_atomic(backup, data, overwrite=False, stamp=stamp)


def _backup_reason(error: OSError) -> str:
    return "backup exists" if error.errno == errno.EEXIST else reason(error)


def write_atomic(
    path: Path, data: bytes | Sequence[Buffer], *, overwrite: bool, stamp: Stamp | None = None
) -> None:
    """Put ``data``, or its parts, at ``path``, whole or not at all; folders above it are made.

    Without ``overwrite`` a file already there, even one that appeared a moment ago, stays and
    `ImageError` is raised. With it, the file that is replaced hands on its permissions; a link
    is itself replaced, never what it points to. With ``stamp`` the file gets those permissions
    and that modification time.
    """
    write_together([(path, data)], overwrite=overwrite, stamp=stamp)


def write_together(
    files: Sequence[tuple[Path, bytes | Sequence[Buffer]]],
    *,
    overwrite: bool,
    stamp: Stamp | None = None,
) -> None:
    """Put several files in place, each as `write_atomic` does, and all of them or none.

    All are whole beside their places before the first is renamed. If one then can't be, those
    that are new are taken away again; what was replaced can't come back.
    """
    staged: list[Path] = []
    new: list[tuple[Path, Identity | None]] = []
    path = Path()
    try:
        for path, data in files:
            staged.append(path.parent / temporary_name())
            _active.add(staged[-1])
            permissions = _permissions(path) if overwrite else None
            try:
                _write_new(staged[-1], data, permissions)
            except FileNotFoundError:
                # Looked for only now: of many outputs the folder is missing for the first alone.
                _make_folder(path.parent)
                _write_new(staged[-1], data, permissions)
            if stamp is not None:
                _imprint(staged[-1], stamp)
        for temporary, (path, _) in zip(staged, files, strict=True):
            # Of one file alone nothing can have to be taken away again.
            known = len(staged) == 1 or os.path.lexists(path)
            identity = None if known else identity_of(os.fspath(temporary))
            _place(temporary, path, overwrite)
            new.append((path, identity))
    except BaseException as error:
        _take_away(staged, new)
        if not isinstance(error, OSError):
            raise
        tip = EXISTS_TIP if error.errno == errno.EEXIST else None
        raise ImageError(f"{path}: {reason(error)}", tip) from error
    finally:
        _active.difference_update(staged)


def _take_away(staged: Sequence[Path], new: Sequence[tuple[Path, Identity | None]]) -> None:
    """Remove what was begun, and of what is in place what is still ours and replaced nothing."""
    for temporary in staged:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
    for path, identity in new:
        if identity is not None and identity == identity_of(os.fspath(path)):
            with contextlib.suppress(OSError):
                os.unlink(path)


def remove_active() -> None:
    """Remove what this process is writing; only for one that is about to end at once."""
    for temporary in list(_active):
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def remove_stale(folder: Path) -> int:
    """Remove what dead processes of this machine left half-written in ``folder``; how many."""
    removed = 0
    try:
        names = os.listdir(folder)
    except OSError:
        return 0
    for name in names:
        if is_stale(name):
            with contextlib.suppress(OSError):
                os.unlink(folder / name)
                removed += 1
    return removed


def is_stale(name: str) -> bool:
    """Whether a name is that of an output that a dead process of this machine was writing."""
    match = _TEMPORARY.fullmatch(name)
    return match is not None and not _alive(int(match[1]))


def temporary_name() -> str:
    """A name that no other process gives an output while it is written."""
    return f".cvcli-{os.getpid()}-{_HOST}{os.urandom(8).hex()}.tmp"


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        # EEXIST would read as "output exists", but it is the folder's name that is taken.
        raise NotADirectoryError(errno.ENOTDIR, "", os.fspath(folder)) from error


def _permissions(path: Path) -> int | None:
    if path.is_symlink() or not path.is_file():
        return None
    return path.stat().st_mode & 0o777


def _write_new(temporary: Path, data: bytes | Sequence[Buffer], permissions: int | None) -> None:
    with open(temporary, "xb") as file:
        if permissions is not None:
            with contextlib.suppress(OSError):
                os.chmod(temporary, permissions)
        for part in (data,) if isinstance(data, bytes) else data:
            file.write(part)


def _imprint(temporary: Path, stamp: Stamp) -> None:
    # Not every file system has modes and times, and the pixels matter more.
    with contextlib.suppress(OSError):
        os.chmod(temporary, stamp.mode & 0o777)
    with contextlib.suppress(OSError):
        os.utime(temporary, ns=(stamp.mtime_ns, stamp.mtime_ns))


def _place(temporary: Path, path: Path, overwrite: bool) -> None:
    if overwrite:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_without_links(temporary, path)
    else:
        os.unlink(temporary)


def _rename_without_links(temporary: Path, path: Path) -> None:
    # Windows refuses to rename onto a file; elsewhere nothing portable does, and a check just
    # before the rename is the best there is on a file system without hard links.
    if sys.platform != "win32" and os.path.lexists(path):
        raise FileExistsError(errno.EEXIST, "", os.fspath(path))
    os.rename(temporary, path)


def _alive(pid: int) -> bool:
    if sys.platform == "win32":
        return True  # os.kill would send Ctrl-C to the process there, so nothing counts as dead
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
