"""Output names and encoder formats."""

# ruff: noqa: PTH118, PTH119, PTH122

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

from cvcli.batch.inputs import Found
from cvcli.batch.places import joined, name_of
from cvcli.batch.template import Template
from cvcli.errors import UsageError

Size = tuple[int, int]


def suffix_of(path: str) -> str:
    """Return the suffix of a path, with its dot."""
    return os.path.splitext(path)[1]


class Naming:
    """Gives inputs their output names: those they have, or those of a template."""

    def __init__(self, format: str | None, template: str | None = None) -> None:
        from cvcli.codecs import format_by_name, format_for_suffix, readable, suffix_for_format

        self._format_for: Callable[[str], str | None] = cache(format_for_suffix)
        self._suffix_for = suffix_for_format
        self._readable = readable
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

    def _checked(self, suffix: str) -> str | None:
        """Return the format that a literal suffix of the template asks for."""
        own = self._format_for(suffix)
        if own is not None and self._format not in (None, own):
            raise UsageError(f"--name: is for {own}, but --format asks for {self._format}")
        if own is None and self._format is None and self._readable(suffix):
            raise UsageError(f"--name: {suffix} files can be read, but not written")
        return self._format or own

    def name_one(self, file: Found, output: str) -> None:
        """The output is this very file, whatever the input is called."""
        file.output, file.relative = output, name_of(output)
        file.format = self._format or self._format_for(suffix_of(output))
        own = self._format_for(suffix_of(output))
        if own is not None and own != file.format:
            raise UsageError(f"{output}: is named for {own}, but --format asks for {file.format}")
        if file.format is None:
            raise UsageError(
                f"{output}: {suffix_of(output)} files can be read, but not written",
                tip="choose another suffix, or give --format",
            )

    def name(self, file: Found, root: str, index: int, size: Size | None = None) -> None:
        """Give a file its place and name under the folder ``root``; it may get a trouble.

        ``size`` is the result's width and height, needed where names are ``sized``.
        """
        stem, suffix = os.path.splitext(file.relative)
        own = self._format_for(suffix) if suffix else None
        file.format = self._forced or own
        if self._forced is None and own is None and self.is_image(suffix):
            file.trouble = f"{suffix} files can be read, but not written"
            file.tip = "give --format to write another one"
        elif own != file.format and file.format is not None:
            new = self._suffix_for(file.format)
            # "scan.2" is no image suffix: replacing it would make one of "scan.2" and "scan.3".
            suffix = new if self.is_image(suffix) else suffix + new
        if self._template is not None and file.trouble is None:
            self._render(self._template, file, suffix, index, size)
        else:
            file.relative = stem + suffix
        file.output = joined(root, file.relative)

    def _render(
        self, template: Template, file: Found, suffix: str, index: int, size: Size | None
    ) -> None:
        folder, name = os.path.split(file.relative)
        stem = os.path.splitext(name)[0]
        width, height = size or (0, 0)
        values: dict[str, str | int] = {
            "stem": stem,
            "name": name,
            "ext": suffix.rpartition(".")[2],
            "parent": _parent(file.path),
            "index": index + 1,
            "width": width,
            "height": height,
        }
        made, trouble = template.render(values)
        file.trouble = trouble
        file.relative = os.path.join(folder, made)


def _parent(path: str) -> str:
    return os.path.basename(os.path.dirname(os.path.abspath(path)))  # noqa: PTH100, PTH120
