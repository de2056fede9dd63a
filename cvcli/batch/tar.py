"""Tar archives as they come through a pipe: checked, and never written to a place outside."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

from cvcli.batch.files import Stamp, reason
from cvcli.errors import ImageError

_BLOCK = tarfile.BLOCKSIZE


@dataclass(frozen=True, slots=True)
class Member:
    """One file of an archive, or why it is refused."""

    name: str
    data: bytes
    stamp: Stamp
    trouble: str | None = None
    tip: str | None = None


class Prefixed:
    """A stream of which the first bytes were read already."""

    def __init__(self, head: bytes, rest: IO[bytes]) -> None:
        self._head, self._rest = head, rest

    def read(self, count: int = -1) -> bytes:
        """Return up to ``count`` bytes, all that are left for a negative one; none at the end."""
        if count < 0:
            return b"".join(iter(lambda: self.read(1 << 20), b""))
        if self._head:
            taken, self._head = self._head[:count], self._head[count:]
            return taken
        return self._rest.read(count) or b""


def peek(stream: IO[bytes]) -> tuple[bytes, Prefixed]:
    """Return a block of a stream, less at its end, and the stream with it still in front."""
    head = b""
    while len(head) < _BLOCK and (more := stream.read(_BLOCK - len(head))):
        head += more
    return head, Prefixed(head, stream)


def is_tar(head: bytes) -> bool:
    """Return whether a stream that starts with this block is a tar, going by its checksum."""
    if len(head) < _BLOCK:
        return False
    try:
        tarfile.TarInfo.frombuf(head, "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return not any(head)  # the end mark: an archive of nothing
    return True


class _CheckedInfo(tarfile.TarInfo):
    """tarfile takes a header it can't read, and a missing end, for the end."""

    @classmethod
    def frombuf(cls, buf: Any, encoding: str, errors: str) -> Any:
        if len(buf) < _BLOCK:
            raise ImageError("truncated tar: its end is missing")
        try:
            return super().frombuf(buf, encoding, errors)
        except tarfile.HeaderError as error:
            if any(buf):
                raise ImageError(f"corrupt tar: {error}") from error
            raise


def members(stream: Prefixed) -> Iterator[Member]:
    """Give the files of an archive one after the other, and what is no file but claims to be.

    Folders are left out. Raises `ImageError` where the archive is truncated or corrupt.
    """
    try:
        # tarfile asks no more of a stream than to be read.
        source: Any = stream
        with tarfile.open(
            fileobj=source,
            mode="r|",
            tarinfo=_CheckedInfo,
            encoding="utf-8",
            errors="surrogateescape",
        ) as archive:
            seen: Any = archive
            for info in archive:
                if not info.isdir():
                    yield _member(archive, info)
                seen.members = []  # else it keeps them all
    except (tarfile.TarError, EOFError) as error:
        short = "end of data" in str(error)
        raise ImageError("truncated tar" if short else f"corrupt tar: {error}") from error
    except OSError as error:
        raise ImageError(f"stdin can't be read ({reason(error)})") from error
    while stream.read(1 << 20):
        pass  # the padding; whoever writes it should not find the pipe closed


def _member(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Member:
    name, trouble = _plain_name(info.name), _trouble(info)
    stamp = Stamp(info.mode & 0o777, int(info.mtime) * 10**9, info.size, (0, 0))
    if trouble is not None:
        tip = _LINK_TIP if info.islnk() or info.issym() else None
        return Member(name or info.name, b"", stamp, trouble, tip)
    file = archive.extractfile(info)
    data = b"" if file is None else file.read()
    if len(data) != info.size:
        raise ImageError(f"truncated tar: it ends inside {name}")
    return Member(name, data, stamp)


_LINK_TIP = "tar --dereference --hard-dereference packs what links point to"


def _plain_name(name: str) -> str:
    parts = [part for part in name.split("/") if part not in ("", os.curdir)]
    return "/".join(parts)


def _trouble(info: tarfile.TarInfo) -> str | None:
    if info.issym() or info.islnk():
        return "a link in a tar is not followed"
    if not info.isreg() or info.issparse():
        return "not a regular file"
    if info.name.startswith("/") or os.pardir in info.name.split("/"):
        return "its place in the tar is outside of it"
    if not _plain_name(info.name):
        return "has no name"
    return None
