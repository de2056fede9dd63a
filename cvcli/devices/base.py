"""The protocol every device keeps, and what a kernel launch is made of."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from ctypes import Structure
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Functor:
    """A step on whole pixels, of ``channels`` samples of ``dtype``; its result has ``nbytes``.

    ``name`` is a header of ``kernels/``, ``header.Type`` for one of several in it, or ``table``
    for a lookup. With ``samples`` it is a pointwise operator, applied to each sample.
    """

    name: str
    dtype: str
    channels: int
    nbytes: int
    samples: bool = False


@dataclass(frozen=True, slots=True)
class Kernel:
    """Which code to run: a pattern over one pixel type, ``channels`` samples of ``dtype``.

    A map of ``kernels/core/map.h`` has ``functors``: names of pointwise operators in ``kernels/``
    or ``("table",)`` for a lookup. Its ``pattern`` is ``map_rows``, its cases ``map_forward`` and
    ``map_mirrored`` for rows that are wholly in or against source order without constants, or
    ``map_tiles`` for transposed moves.

    Any other pattern is of ``kernels/core/patterns``: it is compiled for the numbers ``template``,
    takes pixels through the functors ``before`` as it reads and ``after`` as it writes, and its
    blocks of ``threads`` make ``tile``, a width and a height in pixels. The pixel type is that of
    the pattern's own source. ``uniform`` says that the descriptors are in the argument block, not
    in lists.
    """

    pattern: str
    dtype: str
    channels: int
    functors: tuple[str, ...] = ()
    uniform: bool = True
    before: tuple[Functor, ...] = ()
    after: tuple[Functor, ...] = ()
    template: tuple[int, ...] = ()
    moved: bool = False
    """Whether pixels are read through a gather."""
    planar: tuple[bool, bool] = (False, False)
    """Whether source and result are planar."""
    result: str = ""
    """Dtype of the result, after the steps."""
    tile: tuple[int, int] | None = None
    threads: int = 256
    blocks: int = 0
    """Least blocks a multiprocessor should hold; 0 leaves it to the compiler."""
    room: int = 0
    """Bytes of shared memory that a block takes for its table, beside what is declared."""

    @property
    def source(self) -> tuple[str, int]:
        """Dtype and channels of what is read from memory."""
        first = self.before[0] if self.before else self
        return first.dtype, first.channels


@dataclass(slots=True)
class Launch:
    """One launch, which may be repeated with other pointers in ``args``.

    ``params`` holds one block a functor; before them, for patterns other than maps, the block of
    the pattern. ``rows`` counts the rows of work over the whole batch, in general destination
    rows; ``height`` and ``width`` are those of the largest image; ``nbytes`` is what the launch
    must read and write at least. ``native`` is the device's own, to keep what it has worked out.
    """

    kernel: Kernel
    args: Structure
    params: tuple[bytes, ...]
    count: int
    rows: int
    height: int
    width: int
    nbytes: int
    native: Any = None


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of ``nbytes`` between two pointers of a device."""

    dst: int
    src: int
    nbytes: int


class Device(ABC):
    """A place with memory, in-order streams and events, all named by integers.

    Every call is asynchronous with the host unless it says so; work on one stream runs in order.
    Stream handle 0 is the default stream.
    """

    name: str
    kind: str
    index: int
    marks_late = False
    """Whether an event may be recorded later than right after the work it stands for.

    Not where it tells which work failed.
    """

    @abstractmethod
    def allocate(self, nbytes: int) -> int:
        """Return a pointer to ``nbytes`` of device memory; raise `OutOfMemoryError`."""

    @abstractmethod
    def free(self, pointer: int) -> None:
        """Give memory from `allocate` back; nothing may use it any more."""

    @abstractmethod
    def allocate_staging(self, nbytes: int) -> int:
        """Return host memory that copies to and from this device at full speed (page-locked)."""

    @abstractmethod
    def free_staging(self, pointer: int) -> None:
        """Give memory from `allocate_staging` back."""

    @abstractmethod
    def create_stream(self) -> int:
        """Return a new stream that never waits for the default stream."""

    @abstractmethod
    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream; work already queued on it still completes."""

    @abstractmethod
    def synchronize_stream(self, stream: int) -> None:
        """Block the host until the stream is idle."""

    @abstractmethod
    def query_stream(self, stream: int) -> bool:
        """Return whether the stream is idle."""

    @abstractmethod
    def create_event(self, timing: bool) -> int:
        """Return a new event, which counts as complete until it is recorded."""

    @abstractmethod
    def destroy_event(self, event: int) -> None:
        """Destroy an event."""

    @abstractmethod
    def record_event(self, event: int, stream: int) -> None:
        """Mark this point of the stream."""

    @abstractmethod
    def wait_event(self, stream: int, event: int, *, order_only: bool = False) -> None:
        """Make later work of the stream wait for the event.

        With ``order_only`` that work doesn't depend on what came before the event, so a failure
        there is none of its.
        """

    @abstractmethod
    def synchronize_event(self, event: int) -> None:
        """Block the host until the event is complete."""

    @abstractmethod
    def query_event(self, event: int) -> bool:
        """Return whether the event is complete."""

    @abstractmethod
    def elapsed_ms(self, start: int, end: int) -> float:
        """Return the milliseconds between two complete timing events."""

    @abstractmethod
    def synchronize(self) -> None:
        """Block the host until the whole device is idle."""

    @abstractmethod
    def copy(self, dst: int, src: int, nbytes: int, stream: int) -> None:
        """Copy bytes between any two of this device's and the host's pointers."""

    @abstractmethod
    def launch(self, launch: Launch, stream: int) -> None:
        """Run a kernel; every pointer in its argument block must be of this device.

        The block is taken as it is now: the caller may change it as soon as this returns.
        """

    @abstractmethod
    def create_graph(self, work: Sequence[Launch | Copy]) -> int:
        """Return launches and copies made ready to be queued, in this order, in one call."""

    @abstractmethod
    def launch_graph(self, graph: int, stream: int) -> None:
        """Queue the work of a graph."""

    @abstractmethod
    def destroy_graph(self, graph: int) -> None:
        """Destroy a graph; work already queued still completes."""

    @abstractmethod
    def memory_info(self) -> tuple[int, int]:
        """Return free and total bytes of the device."""
