"""Tensors: a buffer, a shape, and the layout that says what each axis is."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any

from cvcli.core.engine import Engine, engine_of
from cvcli.core.images import Images, Placed
from cvcli.core.memory import Buffer
from cvcli.core.spec import ITEMSIZE, MAX_CHANNELS, ImageSpec
from cvcli.core.stream import Stream, stream_for
from cvcli.errors import CopyError, TensorError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

IMAGE_LAYOUTS = ("HW", "HWC", "NHW", "NHWC", "CHW", "NCHW")


class Form:
    """What is the same for all tensors of one shape, dtype, layout and strides.

    Kept once each (see `form_of`), so that what an operator works out for one serves them all.
    """

    __slots__ = (
        "_images",
        "dtype",
        "itemsize",
        "layout",
        "nbytes",
        "packed",
        "shape",
        "strides",
        "typestr",
    )

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: str,
        layout: str | None,
        strides: tuple[int, ...] | None,
    ) -> None:
        import numpy as np

        if layout is not None:
            _check_layout(layout, len(shape))
        self.shape, self.dtype, self.layout = shape, dtype, layout
        self.itemsize, self.typestr = np.dtype(dtype).itemsize, np.dtype(dtype).str
        self.nbytes = prod(shape) * self.itemsize
        packed = packed_strides(shape, self.itemsize)
        self.strides = packed if strides is None else strides
        self.packed = self.strides == packed
        self._images: tuple[ImageSpec, int, int, int] | None = None

    def images(self) -> tuple[ImageSpec, int, int, int]:
        """Return spec, row pitch, count and stride of the images; raise `TensorError`."""
        if self._images is None:
            self._images = self._as_images()
        return self._images

    def _as_images(self) -> tuple[ImageSpec, int, int, int]:
        if self.layout not in IMAGE_LAYOUTS:
            known = ", ".join(IMAGE_LAYOUTS)
            raise TensorError(f"operand: layout must be one of {known}, got {self.layout}")
        if self.dtype not in ITEMSIZE:
            known = ", ".join(ITEMSIZE)
            raise TensorError(f"operand: dtype must be one of {known}, got {self.dtype}")
        sizes = dict(zip(self.layout, self.shape, strict=True))
        pitches = dict(zip(self.layout, self.strides, strict=True))
        planar = self.layout in ("CHW", "NCHW")
        spec = ImageSpec(sizes["H"], sizes["W"], sizes.get("C", 1), self.dtype, planar)
        self._check_pixels(spec, pitches)
        return spec, pitches["H"], sizes.get("N", 1), pitches.get("N", 0)

    def _check_pixels(self, spec: ImageSpec, pitches: dict[str, int]) -> None:
        if not 1 <= spec.channels <= MAX_CHANNELS:
            raise TensorError(f"operand: must have 1 to 4 channels, got {spec.channels}")
        if 0 in self.shape:
            raise TensorError(f"operand: must not be empty, got shape {self.shape}")
        step = self.itemsize if spec.planar else spec.pixel_nbytes
        between = pitches["H"] * spec.height if spec.planar else self.itemsize
        packed = pitches.get("C", between) == between or spec.channels == 1
        packed &= pitches["W"] == step or spec.width == 1
        packed &= pitches["H"] >= spec.row_nbytes or spec.height == 1
        if not packed or pitches.get("N", 0) < 0:
            raise TensorError(
                f"operand: the pixels of a row must lie side by side, got strides {self.strides}",
                tip="make a contiguous copy first",
            )


def _check_layout(layout: object, axes: int) -> None:
    """Raise `TensorError` for a layout that is none of an image, or of other axes."""
    if layout in IMAGE_LAYOUTS and len(str(layout)) == axes:
        return
    fitting = [known for known in IMAGE_LAYOUTS if len(known) == axes]
    if isinstance(layout, str) and layout and len(layout) != axes:
        tip = f"it may be {' or '.join(fitting)}" if fitting else "leave it out: no operator fits"
        raise TensorError(f"tensor: layout must name each of the {axes} axes, got {layout!r}", tip)
    raise TensorError(
        f"tensor: layout must be one of {', '.join(IMAGE_LAYOUTS)}, got {layout!r}",
        _layout_tip(str(layout), fitting),
    )


def _layout_tip(layout: str, fitting: list[str]) -> str | None:
    """Return what brings a layout to one of those that fit, which has the same axes."""
    if layout.upper() in fitting:
        return f"did you mean {layout.upper()}?"
    for known in fitting:
        if sorted(known) == sorted(layout):
            order = ", ".join(str(layout.index(axis)) for axis in known)
            return f"bring the axes into order: array.transpose({order}).copy(), as {known}"
    return None


_FORMS: dict[tuple[object, ...], Form] = {}
_FORMS_KEPT = 4096


def form_of(
    shape: tuple[int, ...],
    dtype: str,
    layout: str | None,
    strides: tuple[int, ...] | None = None,
) -> Form:
    """Return the one form of these; ``strides`` are bytes, by default packed."""
    key = (shape, dtype, layout, strides)
    try:
        form = _FORMS.get(key)
    except TypeError:
        # A list, which has no hash, can be nothing but the layout.
        _check_layout(layout, len(shape))
        raise
    if form is None:
        form = Form(shape, dtype, layout, strides)
        if len(_FORMS) >= _FORMS_KEPT:
            _FORMS.clear()
        _FORMS[key] = form
    return form


class Tensor:
    """An array on a device; operators read and write it in stream order.

    ``shape`` and ``strides`` (bytes) follow ``layout``, one letter an axis; ``dtype`` is a NumPy
    dtype. Views share their buffer and with it the record of who writes and reads it.
    """

    __slots__ = ("__weakref__", "buffer", "form", "offset")

    def __init__(self, buffer: Buffer, form: Form, offset: int = 0) -> None:
        self.buffer, self.form, self.offset = buffer, form, offset

    @classmethod
    def empty(
        cls, shape: Sequence[int], dtype: str, layout: str | None = None, device: str = "cpu"
    ) -> Tensor:
        """Return a packed tensor whose content is undefined; raise `TensorError`."""
        import numpy as np

        if any(not isinstance(length, int | np.integer) or length < 0 for length in shape):
            raise TensorError(f"tensor: shape must be whole numbers >= 0, got {tuple(shape)}")
        if np.dtype(dtype).kind not in "buif":
            raise TensorError(f"tensor: dtype must be a number, got {np.dtype(dtype)}")
        form = form_of(tuple(map(int, shape)), np.dtype(dtype).name, layout)
        return cls(engine_of(device).allocate(form.nbytes), form)

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.form.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next on each axis."""
        return self.form.strides

    @property
    def layout(self) -> str | None:
        """One letter an axis, such as ``NHWC``."""
        return self.form.layout

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype."""
        import numpy as np

        return np.dtype(self.form.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, without padding."""
        return self.form.nbytes

    @property
    def device(self) -> str:
        """``cpu`` or ``cuda:N``."""
        return self.buffer.device.name

    @property
    def pointer(self) -> int:
        """The address of the first element."""
        return self.buffer.pointer + self.offset

    @property
    def is_packed(self) -> bool:
        """Whether the elements lie without gaps in row-major order."""
        return self.form.packed

    def __repr__(self) -> str:
        return f"<cvcli.Tensor {self.layout} {self.shape} {self.form.dtype} on {self.device}>"

    def __copy__(self) -> Tensor:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if self.device == "cpu":
            from cvcli.core.interop import as_tensor

            buffer = as_tensor(self.numpy()).buffer
            return Tensor(buffer, form_of(self.shape, self.form.dtype, self.layout))
        copied = self._copied() if self.is_packed else self._packed(None)
        copied.buffer.synchronize()
        return copied

    def _copied(self) -> Tensor:
        engine = engine_of(self.buffer.device)
        out = Tensor(engine.allocate(self.nbytes), self.form)
        if self.nbytes:
            on = stream_for(engine.device, None)
            engine.copy(out.buffer, self.buffer, self.nbytes, on, of=self.offset)
        return out

    def __reduce__(self) -> Any:
        raise CopyError(
            "tensor: can't be pickled, as its memory is of this process",
            tip="pickle what tensor.numpy() returns, and wrap it there with cvcli.as_tensor",
        )

    def spec(self) -> ImageSpec:
        """Return the spec of the image, or of each image of a batch; raise `TensorError`."""
        return self.form.images()[0]

    def images(self) -> Images:
        """Return the tensor as the images an operator works on; raise `TensorError`."""
        spec, pitch, count, stride = self.form.images()
        return Images(self.buffer, Placed(spec, self.offset, pitch), count, stride)

    def numpy(self, stream: Stream | None = None) -> NDArray[np.generic]:
        """Return a copy on the host, after everything written so far."""
        import numpy as np

        if not self.is_packed and self.device == "cpu":
            return np.array(self, order="C")
        source = self if self.is_packed else self._packed(stream)
        engine = engine_of(source.buffer.device)
        staging = engine.allocate_staging(source.nbytes)
        on = stream_for(self.buffer.device, stream)
        engine.copy(staging, source.buffer, source.nbytes, on, of=source.offset)
        staging.synchronize()
        array = np.empty(self.shape, self.dtype)
        copy_to_host(array, staging)
        return array

    def to(self, device: str, stream: Stream | None = None) -> Tensor:
        """Return a packed copy on a device, stream-ordered; the tensor itself if it is there."""
        from cvcli.devices.find import parse_device

        name = parse_device(device)
        if name == self.device:
            return self
        from cvcli.core.interop import as_tensor

        host = self if self.device == "cpu" else as_tensor(self.numpy(stream), self.layout)
        if name == "cpu":
            return host
        return upload(host, name, stream)

    def _packed(self, stream: Stream | None) -> Tensor:
        from cvcli.core.apply import apply
        from cvcli.core.chain import Chain

        return apply(Chain(()), self, stream=stream)

    def cuda(self) -> Any:
        """Return a view with ``__cuda_array_interface__`` version 3 of a CUDA tensor.

        It names the stream that last wrote the tensor, so a consumer that follows it needs no
        synchronising by hand. Raises `TensorError` for a tensor on the CPU.
        """
        return _lending().CudaView(self)

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a DLPack capsule, as the array API standard says.

        On CUDA the consumer's ``stream`` waits for all work queued on the tensor: None and 1 are
        the legacy default stream, 2 the per-thread one, -1 asks for no wait. On the CPU the host
        waits. Raises `BufferError` for what can't be served, `ParameterError` for stream 0.
        """
        return _lending().to_dlpack(self, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return DLPack's device type, 1 for the CPU and 2 for CUDA, and the device's index."""
        place: tuple[int, int] = _lending().device_of(self)
        return place

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.generic]:
        import numpy as np

        if self.device != "cpu":
            raise TensorError(
                f"tensor: must be on the CPU to be a NumPy array, got {self.device}",
                tip="use .numpy()",
            )
        view: NDArray[np.generic] = np.asarray(self)
        if dtype is not None and np.dtype(dtype) != view.dtype:
            if copy is False:
                raise ValueError(f"tensor: a view can't change dtype {view.dtype} to {dtype}")
            return view.astype(dtype)
        return view.copy() if copy else view

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self.device != "cpu":
            raise AttributeError("tensor: is not on the CPU; use .numpy() or .to('cpu')")
        self.buffer.synchronize()
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": self.form.typestr,
            "data": (self.pointer, self.buffer.read_only),
            "strides": None if self.is_packed else self.strides,
        }


@cache
def _lending() -> Any:
    """Return the module that needs this one."""
    from cvcli.core import lend

    return lend


def packed_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the byte strides of a row-major array without gaps."""
    strides, step = [], itemsize
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))


def copy_to_host(array: NDArray[np.generic], staging: Buffer) -> None:
    """Copy staging memory, which must be idle, into a packed array."""
    import ctypes

    ctypes.memmove(array.ctypes.data, staging.pointer, array.nbytes)


def upload(host: Tensor, device: str, stream: Stream | None = None) -> Tensor:
    """Return a copy of a packed CPU tensor on another device."""
    import ctypes

    engine: Engine = engine_of(device)
    source = host if host.is_packed else host._packed(None)
    source.buffer.synchronize()
    staging = engine.allocate_staging(source.nbytes)
    ctypes.memmove(staging.pointer, source.pointer, source.nbytes)
    out = Tensor.empty(source.shape, source.form.dtype, source.layout, device)
    engine.copy(out.buffer, staging, source.nbytes, stream_for(engine.device, stream))
    return out
