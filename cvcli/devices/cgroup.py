"""What a container or a service may use of a Linux machine: both versions of control groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

_ROOT, _OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def processors(root: Path = _ROOT, own: Path = _OWN) -> int | None:
    """Return the processors that the quota is worth, rounded up; None without a quota."""
    found = []
    for folder in _folders("cpu", root, own):
        words = _words(folder / "cpu.max")
        if not words:
            words = _words(folder / "cpu.cfs_quota_us") + _words(folder / "cpu.cfs_period_us")
        # Version 1 says -1 and version 2 "max" where there is no quota.
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            found.append(-(-int(words[0]) // max(1, int(words[1]))))
    return max(1, min(found)) if found else None


def memory(root: Path = _ROOT, own: Path = _OWN) -> int | None:
    """Return the bytes of memory that may be used; None without a limit."""
    found = []
    for folder in _folders("memory", root, own):
        words = _words(folder / "memory.max") or _words(folder / "memory.limit_in_bytes")
        if words and words[0].isdigit():
            found.append(int(words[0]))
    return min(found) if found else None


def _folders(controller: str, root: Path, own: Path) -> Iterator[Path]:
    """The process's own group and those around it, by each hierarchy with the controller.

    Inside a container paths may be those of the outside, so that only the root is there.
    """
    for line in _lines(own):
        _, names, path = (line.split(":", 2) + ["", ""])[:3]
        if not names:
            top = root
        elif controller in names.split(","):
            top = next(
                (root / name for name in (names, controller) if (root / name).is_dir()), root
            )
        else:
            continue
        parts = [part for part in path.split("/") if part]
        yield from (top.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, ValueError):
        return []


def _words(path: Path) -> list[str]:
    return [word for line in _lines(path) for word in line.split()]
