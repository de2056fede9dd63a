"""Templates of output names, such as ``{stem}-{width}x{height}.{ext}``."""

from __future__ import annotations

from cvcli.errors import UsageError

_TEXTS = ("stem", "name", "ext", "parent")
_NUMBERS = ("index", "frame", "width", "height")
FIELDS = (*_TEXTS, *_NUMBERS)


class Template:
    """A name with fields, checked; ``UsageError`` where it can't be understood.

    ``stem``, ``name`` and ``parent`` are of the input, ``ext`` of the output; ``width`` and
    ``height`` are the result's, in pixels; ``index`` counts the inputs from 1, ``frame`` the
    pictures of each from 0. Numbers take a width as in ``{index:04}``. Braces are doubled to stand
    for themselves.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        from string import Formatter

        try:
            parts = list(Formatter().parse(text))
        except ValueError as error:
            raise UsageError(f"--name: {error} in {text!r}") from None
        for _, field, spec, conversion in parts:
            if field is not None:
                _check_field(field, spec or "", conversion)
        if not text or text.endswith("/"):
            raise UsageError(f"--name: must be the name of a file, got {text!r}")
        self.sized = any(field in ("width", "height") for _, field, _, _ in parts)
        self.numbered = any(field == "frame" for _, field, _, _ in parts)
        self.ending = parts[-1][0] if parts[-1][1] is None else ""
        """The text after the last field, which may hold a suffix."""

    def render(self, values: dict[str, str | int]) -> tuple[str, str | None]:
        """Return the name, and why it can't be one where it can't."""
        made = self._text.format(**values)
        parts = made.split("/")
        if made.startswith("/") or ".." in parts or "." in parts or "" in parts:
            return made, f"--name makes of it {made!r}, which is no place below the output folder"
        return made, None


def _check_field(field: str, spec: str, conversion: str | None) -> None:
    if field not in FIELDS:
        import difflib

        near = difflib.get_close_matches(field, FIELDS, 1)
        listed = "its fields are " + ", ".join(FIELDS)
        tip = f"did you mean {{{near[0]}}}? {listed}" if near else listed
        raise UsageError(f"--name: there is no field {{{field}}}", tip=tip)
    width = spec.isdigit() and len(spec) <= 2
    if conversion is not None or (spec and (field in _TEXTS or not width)):
        raise UsageError(
            f"--name: {{{field}}} can't be written as asked",
            tip="numbers take a width, as in {index:04}",
        )
