"""What a user may ask of a plan: which inputs, how outputs are named, what existing ones mean."""

from __future__ import annotations

from dataclasses import dataclass

from cvcli.batch.places import Place
from cvcli.errors import UsageError

_DECISIONS = ("overwrite", "skip_existing", "if_newer", "in_place", "check")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Wishes that have been checked against each other; `UsageError` where two contradict.

    ``include`` and ``exclude`` are glob patterns for what is found in folders; ``base`` is the
    folder from which named files keep their place; ``name`` is a template of output names;
    ``frame`` is the picture that is wanted of each file, None for all.
    """

    recursive: bool = False
    hidden: bool = False
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    base: Place | None = None
    format: str | None = None
    name: str | None = None
    frame: int | None = None
    overwrite: bool = False
    skip_existing: bool = False
    if_newer: bool = False
    in_place: bool = False
    check: bool = False
    backup: str | None = None

    def __post_init__(self) -> None:
        chosen = [name for name in _DECISIONS if getattr(self, name)]
        if len(chosen) > 1:
            raise UsageError(f"{_spelled(chosen[0])} and {_spelled(chosen[1])}: {_ONE}")
        if self.backup is not None and not self.in_place:
            raise UsageError("--backup: is for --in-place; nothing else changes an input")
        if self.backup is not None and (not self.backup or "/" in self.backup):
            raise UsageError(f"--backup: the suffix must be a part of a name, got {self.backup!r}")
        for name in ("format", "name", "base"):
            if self.in_place and getattr(self, name) is not None:
                raise UsageError(f"--in-place and --{name}: {_ONE}")

    @property
    def replaces(self) -> bool:
        """Whether an output that exists is replaced."""
        return self.overwrite or self.if_newer or self.in_place


_ONE = "only one of them can be given"


def _spelled(name: str) -> str:
    return "--" + name.replace("_", "-")
