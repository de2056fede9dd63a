"""Streams and events, with CV-CUDA's names and meanings on every device."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from cvcli.devices import Device, default_device_name, open_device
from cvcli.devices.numbers import Numbers
from cvcli.errors import CopyError, DeviceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from cvcli.core.marks import Mark

_local = threading.local()
_DEFAULTS: dict[str, Stream] = {}
_keys = Numbers()
_LEGACY = 1


def no_mark() -> Mark | None:
    """Stand for the reference to a stream's open mark where it has none."""
    return None


def _stack() -> list[Stream]:
    if not hasattr(_local, "stack"):
        _local.stack = []
    stack: list[Stream] = _local.stack
    return stack


class _StreamMeta(type):
    """Gives `Stream` its two class attributes, ``default`` and ``current``."""

    @property
    def default(cls) -> Stream:
        """The default device's default stream, handle 0."""
        return default_stream(default_device_name())

    @property
    def current(cls) -> Stream:
        """This thread's innermost ``with`` stream, else the default stream."""
        stack = _stack()
        return stack[-1] if stack else default_stream(default_device_name())


class Stream(metaclass=_StreamMeta):
    """An in-order queue of work on one device that never waits for the default stream.

    ``with stream:`` makes it current for the calling thread. Deleting the object early is safe:
    work already queued completes, and the stream itself stays until nothing must wait for it.
    """

    key: int
    """Never given twice, whereas a driver gives a destroyed stream's handle to a new one."""
    lasting: bool
    """Whether the handle is sure to mean this stream for as long as the object lives."""
    open_mark: Callable[[], Mark | None]
    """Finds the mark that stands for all work queued here so far, while somebody holds it."""

    def __init__(self, device: str | None = None) -> None:
        self._bind(open_device(device or default_device_name()))
        self._handle = self._device.create_stream()
        self.key, self.lasting = _keys.take(), True
        weakref.finalize(self, self._device.destroy_stream, self._handle).atexit = False

    @classmethod
    def _wrap(cls, device: Device, handle: int, owner: object = None) -> Stream:
        """Return a stream made elsewhere; ``owner`` is kept as long as the object returned."""
        stream = cls.__new__(cls)
        stream._bind(device)
        if device.kind == "cuda" and handle == _LEGACY:
            handle = 0
        stream._handle, stream._owner = handle, owner
        # Others may destroy theirs at any time, and handle 2 is another stream in each thread.
        stream.lasting = handle == 0
        stream.key = 0 if stream.lasting else _keys.take()
        return stream

    def _bind(self, device: Device) -> None:
        self._device = device
        self._owner: object = None
        self.open_mark = no_mark

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda:N``."""
        return self._device.name

    @property
    def handle(self) -> int:
        """The ``cudaStream_t`` as an integer; on the CPU device a number of our own."""
        return self._handle

    def __int__(self) -> int:
        return self._handle

    def __cuda_stream__(self) -> tuple[int, int]:
        if self._device.kind != "cuda":
            raise DeviceError(f"stream: must be on a CUDA device, got {self.device}")
        return 0, self._handle

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return NotImplemented
        return self._device is other._device and self._handle == other._handle

    def __hash__(self) -> int:
        return hash((self.device, self._handle))

    def __repr__(self) -> str:
        return f"<cvcli.Stream {self.device} handle={self._handle}>"

    def __reduce__(self) -> Any:
        # Copies go this way too; one made field by field would outlive the driver's stream.
        raise CopyError(
            "stream: can't be copied or pickled, as its work is queued in this process",
            tip=f"make another one: cvcli.Stream({self.device!r})",
        )

    def sync(self) -> None:
        """Block the host until all work queued so far is done."""
        self._device.synchronize_stream(self._handle)

    def query(self) -> bool:
        """Return whether all work queued so far is done."""
        return self._device.query_stream(self._handle)

    def record(self, *, timing: bool = False) -> Event:
        """Return an event that completes when the work queued so far is done."""
        return Event(self.device, timing=timing).record(self)

    def wait(self, other: Stream | Event) -> None:
        """Make later work on this stream wait for an event, or for all work on a stream so far."""
        event = other.record() if isinstance(other, Stream) else other
        if not isinstance(event, Event):
            raise _no_stream("a cvcli.Stream or cvcli.Event", event)
        event._order(self)

    def __enter__(self) -> Stream:
        _stack().append(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        stack = _stack()
        if not stack or stack[-1] is not self:
            raise UsageError("stream: `with` blocks must be left in the reverse order")
        stack.pop()


class Event:
    """A point in a stream's work; it counts as complete until it is first recorded."""

    def __init__(self, device: str | None = None, *, timing: bool = False) -> None:
        self._device = open_device(device or default_device_name())
        self._handle = self._device.create_event(timing)
        self._timing = timing
        weakref.finalize(self, self._device.destroy_event, self._handle).atexit = False

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda:N``."""
        return self._device.name

    @property
    def handle(self) -> int:
        """The ``cudaEvent_t`` as an integer; on the CPU device a number of our own."""
        return self._handle

    def __repr__(self) -> str:
        return f"<cvcli.Event {self.device} handle={self._handle}>"

    def __reduce__(self) -> Any:
        raise CopyError(
            "event: can't be copied or pickled, as it marks work of this process",
            tip="record another one: stream.record()",
        )

    def record(self, stream: Stream | None = None) -> Event:
        """Mark this point of a stream, by default the current one; return the event itself."""
        stream = stream or Stream.current
        if stream.device != self.device:
            raise DeviceError(f"event: the stream must be on {self.device}, got {stream.device}")
        self._device.record_event(self._handle, stream.handle)
        mark = stream.open_mark()
        if mark is not None:
            # Whoever marks a point waits for work before it: that must not mean work after it.
            mark.seal()
        return self

    def query(self) -> bool:
        """Return whether the work before the event is done."""
        return self._device.query_event(self._handle)

    def sync(self) -> None:
        """Block the host until the work before the event is done."""
        self._device.synchronize_event(self._handle)

    def elapsed(self, earlier: Event) -> float:
        """Return the milliseconds since an earlier event; both need ``timing=True``."""
        if not (self._timing and earlier._timing):
            raise UsageError("event: both events must be made with timing=True to be compared")
        return self._device.elapsed_ms(earlier._handle, self._handle)

    def _order(self, stream: Stream) -> None:
        if stream._device is self._device:
            self._device.wait_event(stream.handle, self._handle)
        else:
            self.sync()


def default_stream(device: str) -> Stream:
    """Return the default stream of a device, handle 0."""
    opened = open_device(device)
    return _DEFAULTS.setdefault(opened.name, Stream._wrap(opened, 0))


def _no_stream(wanted: str, value: object) -> UsageError:
    got = type(value).__name__
    tip = "wrap the stream with cvcli.as_stream"
    return UsageError(f"stream: must be {wanted}, got {got}", tip=tip)


def stream_for(device: Device, stream: Stream | None) -> Stream:
    """Return the stream to run on: the one given, else this thread's current one on the device."""
    if stream is not None:
        if not isinstance(stream, Stream):
            raise _no_stream("a cvcli.Stream", stream)
        if stream._device is not device:
            raise DeviceError(
                f"stream: must be on {device.name} like the tensor, got {stream.device}"
            )
        return stream
    for candidate in reversed(_stack()):
        if candidate._device is device:
            return candidate
    return default_stream(device.name)


def as_stream(obj: Any, device: str | None = None) -> Stream:
    """Wrap a stream of CuPy, PyTorch or any ``__cuda_stream__`` object, or an integer handle.

    The wrapper keeps the object alive; whoever passes a bare handle must keep its stream alive.
    Handles 0 and 1 are the default stream, and 2 is the calling thread's own, to be wrapped anew
    in each thread. ``device`` is by default the one the object names, else the default device.
    Raises `UsageError`.
    """
    if isinstance(obj, Stream):
        return obj
    opened = open_device(device or _device_named_by(obj) or default_device_name())
    return Stream._wrap(opened, _handle_of(obj), owner=obj)


def _device_named_by(obj: Any) -> str | None:
    # CuPy's and PyTorch's name for it; CuPy says -1 where it does not know.
    for name in ("device_id", "device_index"):
        index = getattr(obj, name, None)
        if isinstance(index, int) and index >= 0:
            return f"cuda:{index}"
    return None


def _handle_of(obj: Any) -> int:
    protocol = getattr(obj, "__cuda_stream__", None)
    if protocol is not None:
        # A method by the protocol; first drafts of it had a property.
        obj = (protocol() if callable(protocol) else protocol)[1]
    for handle in (obj, *(getattr(obj, name, None) for name in _HANDLE_NAMES)):
        if isinstance(handle, int) and not isinstance(handle, bool) and handle >= 0:
            return handle
    raise UsageError(f"as_stream: must be a stream or a handle >= 0, got {obj!r}")


# CuPy's, PyTorch's, ctypes' and our own name for it.
_HANDLE_NAMES = ("ptr", "cuda_stream", "value", "handle")
