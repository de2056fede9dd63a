"""Where a run's images come from and go to: files and folders, or the standard streams."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from cvcli.batch.files import Stamp, reason
from cvcli.batch.inputs import Found, listed
from cvcli.batch.outputs import Size
from cvcli.batch.patterns import has_magic
from cvcli.batch.pictures import counted_in
from cvcli.batch.places import Place, Url, place
from cvcli.batch.plan import STDIO, Plan, make_plan, plan_files
from cvcli.batch.rules import Rules
from cvcli.batch.run import Ends
from cvcli.batch.sinks import CheckSink, FileSink, PipeSink, Sink, TarSink
from cvcli.batch.sources import Files, Held
from cvcli.cli.options import Wishes
from cvcli.core.chain import Chain
from cvcli.errors import ImageError, NoInputError, UsageError

_RULES = (
    *("recursive", "hidden", "format", "name", "overwrite", "skip_existing"),
    *("if_newer", "in_place", "check", "backup", "frame"),
)
# gzip, bzip2, xz, zstd
_COMPRESSED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: the chain, its inputs and where they go, and the wishes."""

    chain: Chain
    inputs: list[Place]
    output: Place | None
    wishes: Wishes
    threads: int
    max_pixels: int

    @property
    def rules(self) -> dict[str, Any]:
        """The wishes that a plan heeds."""
        base = self.wishes.base
        return {name: getattr(self.wishes, name) for name in _RULES} | {
            "base": None if base is None else place(base),
            "include": tuple(self.wishes.include or ()),
            "exclude": tuple(self.wishes.exclude or ()),
        }

    def sizes(self, paths: Sequence[str], counts: Sequence[int]) -> list[list[Size] | str]:
        """Return the sizes of so many results of each input, by their headers."""
        from cvcli.batch.check import sizes_of

        upright, frame = not self.wishes.no_auto_orient, self.wishes.frame
        return sizes_of(paths, counts, self.chain, self.threads, self.max_pixels, upright, frame)

    def measure(self) -> Callable[[bytes, int], list[Size] | str]:
        """Return what gives the sizes of so many results from the bytes of their input."""
        from cvcli.batch.check import measure_of

        upright, frame = not self.wishes.no_auto_orient, self.wishes.frame
        return measure_of(self.chain, self.max_pixels, upright, frame)


def split(paths: list[str], wishes: Wishes, chain: Chain) -> tuple[list[Place], Place | None]:
    """Return the inputs and the output, None for ``--in-place``; `UsageError` if any is lacking.

    The ``chain`` is for the example in the error.
    """
    if "" in paths:
        raise UsageError("an empty path was given", tip="is a variable of your shell unset?")
    count = len(paths) + (wishes.files_from is not None)
    if count < (1 if wishes.in_place else 2):
        wanted, form = "an input and an output", "INPUT... OUTPUT"
        if wishes.in_place:
            wanted, form = "an input", "INPUT..."
        got = f", got only {paths[0]!r}" if paths else ""
        command = f'run "{chain}"' if len(chain) > 1 else str(chain)
        raise UsageError(
            f"{wanted} must be given, as in {form}{got}",
            tip=f"for example: cvcli {command} in/{' --in-place' if wishes.in_place else ' out/'}",
        )
    if wishes.in_place:
        if wishes.frame is not None:
            raise UsageError(
                "--in-place and --frame: only one of them can be given",
                tip="the other pictures would be lost; name an OUTPUT",
            )
        _refuse_output(paths)
        return [place(path) for path in paths], None
    return [place(path) for path in paths[:-1]], place(paths[-1])


def _refuse_output(paths: list[str]) -> None:
    """Refuse what is meant as an output: the inputs must not be replaced by mistake."""
    last = paths[-1] if len(paths) > 1 else ""
    far = isinstance(place(last), Url)
    if last and not (far or os.path.lexists(last) or has_magic(last)):
        raise UsageError(
            f"{last}: no such file, and --in-place takes no OUTPUT",
            tip="leave out the output, or --in-place to keep the inputs as they are",
        )


def plan_and_ends(request: Request) -> tuple[Plan, Ends]:
    """Return the plan of a request, and where its images come from and go to."""
    if request.output == STDIO and not (request.wishes.dry_run or request.wishes.explain):
        _refuse_terminal(sys.stdout, "binary data is not written to a terminal", "| or >")
    if STDIO in request.inputs:
        return _from_stdin(request)
    lists = request.wishes.files_from
    more = [] if lists is None else listed(lists, null=request.wishes.null)
    measure = request.sizes
    plan = make_plan(request.inputs, request.output, listed=more, measure=measure, **request.rules)
    one = len(plan.jobs) == 1 and plan.jobs[0].output == STDIO
    single = one or not (plan.jobs or len(plan) > 1)
    stamped = request.wishes.preserve or request.output == STDIO
    return plan, Ends(Files(stamped=stamped), _sink(request, single=single))


def _sink(request: Request, *, single: bool) -> Sink:
    wishes = request.wishes
    if wishes.check:
        return CheckSink()
    if request.output == STDIO:
        descriptor = 1 if wishes.dry_run or wishes.explain else sys.stdout.fileno()
        return PipeSink(descriptor) if single else TarSink(descriptor)
    return FileSink(
        overwrite=wishes.overwrite or wishes.if_newer or wishes.in_place,
        preserve=wishes.preserve,
        in_place=wishes.in_place,
        backup=wishes.backup,
        resumes=wishes.skip_existing,
    )


def _from_stdin(request: Request) -> tuple[Plan, Ends]:
    from cvcli.batch.tar import is_tar, peek

    if len(request.inputs) > 1 or request.wishes.files_from is not None:
        raise UsageError("-: stdin can't be read beside other inputs")
    if request.output is None:
        raise UsageError("-: stdin can't be replaced in place")
    _refuse_terminal(sys.stdin, "stdin is a terminal", "<")
    try:
        head, stream = peek(_stdin())
    except OSError as error:
        raise UsageError(f"-: stdin can't be read ({reason(error)})") from None
    if not head:
        raise NoInputError("-: nothing came through stdin")
    if head.startswith(_COMPRESSED):
        raise UsageError("-: is compressed", tip="unpack it on the way, as with gzip -dc")
    if is_tar(head):
        return _from_tar(request, stream, request.output)
    return _from_image(request, stream.read(), request.output)


def _stdin() -> Any:
    """Return stdin unbuffered: a thread that waits for it must not hold a lock at the end."""
    if sys.stdin is None:
        return io.BytesIO()
    return io.FileIO(sys.stdin.fileno(), closefd=False)


def _from_tar(request: Request, stream: Any, output: Place) -> tuple[Plan, Ends]:
    from cvcli.batch.feed import Feed

    for option, given in (("dry-run", request.wishes.dry_run), ("explain", request.wishes.explain)):
        if given:
            raise UsageError(f"--{option}: a tar from stdin is known only once it is read")
    rules = Rules(**request.rules)
    if output == STDIO and (rules.replaces or rules.skip_existing or rules.check):
        raise UsageError("-: has no outputs to be looked at")
    feed = Feed(
        stream,
        output,
        rules,
        request.measure(),
    )
    ends = Ends(feed.source, _sink(request, single=False), feed)
    return Plan((), (), (), output), ends


def _from_image(request: Request, data: bytes, output: Place) -> tuple[Plan, Ends]:
    """One image on stdin; in a folder its name is ``stdin``, with the suffix of its format."""
    source = Held()
    source.hold(0, data, Stamp(0o644, 0, len(data), (0, 0)))
    measure = request.measure()
    plan = plan_files(
        [Found(os.fspath(STDIO), f"stdin{_suffix(data)}")],
        output,
        Rules(**request.rules),
        lambda paths, counts: [measure(data, count) for count in counts],
        lambda paths: [counted_in(data) for _ in paths],
    )
    return plan, Ends(source, _sink(request, single=True))


def _suffix(data: bytes) -> str:
    """Return the suffix that an image's content asks for; none if it is no image."""
    import cvcli.codecs as codecs

    try:
        format = codecs.probe(data, None).format
    except ImageError:
        return ""
    try:
        return codecs.suffix_for_format(format)
    except ImageError:
        return f".{format.lower()}"


def _refuse_terminal(stream: Any, trouble: str, sign: str) -> None:
    if stream is None:
        raise UsageError("-: the stream is closed")
    if stream.isatty():
        raise UsageError(f"-: {trouble}", tip=f"use {sign} to connect it to a file or a program")
