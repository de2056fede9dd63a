"""Output names and encoder formats."""

# ruff: noqa: PTH118, PTH119, PTH120, PTH122

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache

from cvcli.batch.inputs import Found
from cvcli.batch.places import joined, name_of
from cvcli.batch.template import Template
from cvcli.errors import UsageError

Size = tuple[int, int]
# Numbers of pictures have at least as many digits, so that names sort up to 1000 of them.
_DIGITS = 3


def suffix_of(path: str) -> str:
    """Return the suffix of a path, with its dot."""
    return os.path.splitext(path)[1]


class Naming:
    """Gives inputs their output names: those they have, or those of a template.

    ``frame`` is the only picture wanted of each, None for all.
    """

    def __init__(
        self, format: str | None, template: str | None = None, frame: int | None = None
    ) -> None:
        from cvcli.codecs import format_by_name, format_for_suffix, readable, suffix_for_format

        self._format_for: Callable[[str], str | None] = cache(format_for_suffix)
        self._suffix_for = suffix_for_format
        self._readable = readable
        self._frame = frame
        self._format = None if format is None else format_by_name(format)
        self._template = None if template is None else Template(template)
        self._forced = self._format
        if self._template is not None and (suffix := suffix_of(f"x{self._template.ending}")):
            self._forced = self._checked(suffix)

    @property
    def sized(self) -> bool:
        """Whether names depend on the sizes of the results."""
        return self._template is not None and self._template.sized

    def is_image(self, suffix: str) -> bool:
        """Return whether a file with this suffix is taken for an image."""
        return self._readable(suffix) or self._format_for(suffix) is not None

    def may_split(self, file: Found, output: str | None = None) -> bool:
        """Whether a file's pictures get outputs of their own, should it hold several.

        ``output`` is the name that was given for it. That the target holds one picture follows
        from the suffixes alone, so of most inputs no content need be known.
        """
        from cvcli.codecs import SERIES, holds_all

        if self._frame is not None or file.trouble is not None:
            return False
        if self._template is not None and self._template.numbered:
            return True
        own = self._format_for(suffix_of(file.relative))
        target = self._forced or (own if output is None else self._format_for(suffix_of(output)))
        if own is None:
            return target is not None and target != "TIFF"
        return own in SERIES and target is not None and not holds_all(own, target)

    def _checked(self, suffix: str) -> str | None:
        """Return the format that a literal suffix of the template asks for."""
        own = self._format_for(suffix)
        if own is not None and self._format not in (None, own):
            raise UsageError(f"--name: is for {own}, but --format asks for {self._format}")
        if own is None and self._format is None and self._readable(suffix):
            raise UsageError(f"--name: {suffix} files can be read, but not written")
        return self._format or own

    def name_one(self, file: Found, output: str, count: int = 1) -> None:
        """The output is this very file, whatever the input is called, or ``count`` of its name."""
        name = name_of(output)
        folder = output.rstrip("/").removesuffix(name)
        _put(file, [(own, folder + own) for own in _numbered(name, count)])
        file.format = self._format or self._format_for(suffix_of(output))
        own = self._format_for(suffix_of(output))
        if own is not None and own != file.format:
            raise UsageError(f"{output}: is named for {own}, but --format asks for {file.format}")
        if file.format is None:
            raise UsageError(
                f"{output}: {suffix_of(output)} files can be read, but not written",
                tip="choose another suffix, or give --format",
            )

    def name(self, file: Found, root: str, index: int, sizes: Sequence[Size] = ((0, 0),)) -> None:
        """Give a file its place and name under the folder ``root``; it may get a trouble.

        ``sizes`` has an item for each picture that gets an output of its own: the result's width
        and height, needed where names are ``sized``.
        """
        stem, suffix = os.path.splitext(file.relative)
        own = self._format_for(suffix) if suffix else None
        file.format = self._forced or own
        file.by_suffix = self._forced is None and own is not None
        if self._forced is None and own is None and self.is_image(suffix):
            file.trouble = f"{suffix} files can be read, but not written"
            file.tip = "give --format to write another one"
        elif own != file.format and file.format is not None:
            new = self._suffix_for(file.format)
            # "scan.2" is no image suffix: replacing it would make one of "scan.2" and "scan.3".
            suffix = new if self.is_image(suffix) else suffix + new
        if self._template is not None and file.trouble is None:
            names = self._rendered(self._template, file, suffix, index, sizes)
        else:
            names = _numbered(stem + suffix, len(sizes))
        _put(file, [(name, joined(root, name)) for name in names])

    def _rendered(
        self, template: Template, file: Found, suffix: str, index: int, sizes: Sequence[Size]
    ) -> list[str]:
        folder, name = os.path.split(file.relative)
        values: dict[str, str | int] = {
            "stem": os.path.splitext(name)[0],
            "name": name,
            "ext": suffix.rpartition(".")[2],
            "parent": _parent(file.path),
            "index": index + 1,
        }
        made = []
        for number, (width, height) in enumerate(sizes, self._frame or 0):
            values |= {"frame": number, "width": width, "height": height}
            name, trouble = template.render(values)
            file.trouble = file.trouble or trouble
            made.append(os.path.join(folder, name))
        if template.numbered:
            return made
        return [_with_number(name, number, len(made)) for number, name in enumerate(made)]


def _put(file: Found, places: Sequence[tuple[str, str]]) -> None:
    first, *more = places
    file.relative, file.output = first
    file.more = tuple(more)


def _numbered(name: str, count: int) -> list[str]:
    return [_with_number(name, number, count) for number in range(count)]


def _with_number(name: str, number: int, count: int) -> str:
    """Return the name of one of ``count`` outputs; counted from 0, as ``--frame`` counts."""
    if count == 1:
        return name
    stem, suffix = os.path.splitext(name)
    digits = max(_DIGITS, len(str(count - 1)))
    return f"{stem}-{number:0{digits}}{suffix}"


def _parent(path: str) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(path)))  # noqa: PTH100
