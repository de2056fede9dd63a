"""DLPack in and out: what is shared, what is refused, who waits, and when memory is given back."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from ctypes import CFUNCTYPE, c_char_p, c_int64, c_void_p, py_object, pythonapi

import numpy as np
import pytest
from conftest import assert_same, fresh_python, held, noise

import cvcli
from cvcli.core import lend
from cvcli.core.dlpack import DLDataType, DLDevice, DLTensor, Managed, Versioned
from cvcli.errors import TensorError

IMAGE = noise((9, 11, 3), "uint8")
FLIPPED = np.ascontiguousarray(IMAGE[::-1, ::-1])
UINT8 = (1, 8, 1)
_new = ctypes.PYFUNCTYPE(py_object, c_void_p, c_char_p, c_void_p)(("PyCapsule_New", pythonapi))
_pointer = ctypes.PYFUNCTYPE(c_void_p, py_object, c_char_p)(("PyCapsule_GetPointer", pythonapi))
_rename = ctypes.PYFUNCTYPE(ctypes.c_int, py_object, c_char_p)(("PyCapsule_SetName", pythonapi))
_name = ctypes.PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
VERSIONED, LEGACY, USED = b"dltensor_versioned", b"dltensor", b"used_dltensor"


class Producer:
    """An array of some other library; it counts the calls of its deleter."""

    def __init__(self, array, *, versioned=True, dtype=UINT8, device=(1, 0), flags=0, major=1):
        self.array, self.versioned, self.device, self.calls = array, versioned, device, []
        self.deleted = 0
        self.shape = (c_int64 * array.ndim)(*array.shape)
        self.deleter = CFUNCTYPE(None, c_void_p)(self.delete)
        tensor = DLTensor(
            data=array.ctypes.data - 5,
            device=DLDevice(*device),
            ndim=array.ndim,
            dtype=DLDataType(*dtype),
            shape=self.shape,
            byte_offset=5,
        )
        deleter = ctypes.cast(self.deleter, c_void_p).value
        if versioned:
            self.managed = Versioned(major=major, deleter=deleter, flags=flags, tensor=tensor)
        else:
            self.managed = Managed(tensor=tensor, deleter=deleter)
        self.address = ctypes.addressof(self.managed)
        self.capsule = _new(self.address, VERSIONED if versioned else LEGACY, None)

    def delete(self, managed):
        assert managed == self.address
        self.deleted += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        self.calls.append(options)
        if "max_version" in options and not self.versioned:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.capsule


@pytest.mark.parametrize("versioned", (True, False))
def test_a_capsule_is_taken_over_and_deleted_once(versioned):
    producer = Producer(IMAGE.copy(), versioned=versioned)
    tensor = cvcli.as_tensor(producer)
    first = {"stream": None, "max_version": (1, 0)}
    assert producer.calls == ([first] if versioned else [first, {"stream": None}])
    assert tensor.pointer == producer.array.ctypes.data and tensor.is_packed
    assert (tensor.shape, tensor.dtype, tensor.layout) == (IMAGE.shape, np.uint8, "HWC")
    assert _name(producer.capsule).startswith(USED)
    assert_same(cvcli.flip(tensor, -1).numpy(), FLIPPED)
    assert producer.deleted == 0
    tensor.buffer.synchronize()
    del tensor
    gc.collect()
    assert producer.deleted == 1


def test_the_deleter_waits_for_our_last_use():
    producer, stream = Producer(IMAGE.copy()), cvcli.Stream("cpu")
    with held(stream):
        out = cvcli.flip(cvcli.as_tensor(producer), -1, stream=stream)
        gc.collect()
        cvcli.invert(cvcli.as_tensor(IMAGE)).numpy()
        assert producer.deleted == 0
    assert_same(out.numpy(), FLIPPED)
    cvcli.invert(cvcli.as_tensor(IMAGE)).numpy()
    assert producer.deleted == 1


def test_a_null_deleter_is_fine():
    producer = Producer(IMAGE.copy())
    producer.managed.deleter = None
    assert_same(cvcli.as_tensor(producer).numpy(), IMAGE)


@pytest.mark.parametrize(
    "dtype, name",
    (
        ((5, 64, 1), "complex64"),
        ((4, 16, 1), "bfloat16"),
        ((3, 8, 1), "opaque8"),
        ((1, 8, 4), "uint8 in vectors of 4"),
        ((1, 4, 1), "uint4"),
        ((17, 8, 1), "code 17, 8"),
        ((0, 128, 1), "i16"),
    ),
)
def test_other_dtypes_are_refused_and_stay_the_producers(dtype, name):
    producer = Producer(IMAGE.copy(), dtype=dtype)
    with pytest.raises(TensorError, match=f"as_tensor: dtype must be .* got .*{name}"):
        cvcli.as_tensor(producer)
    assert producer.deleted == 0 and _name(producer.capsule) == VERSIONED


def test_what_else_is_refused():
    for options, words in (
        ({"major": 2}, "version 1 or older, got 2"),
        ({"device": (10, 0)}, "DLPack device type 10"),
        ({"device": (8, 0)}, "DLPack device type 8"),
    ):
        producer = Producer(IMAGE.copy(), **options)
        with pytest.raises(TensorError, match=words):
            cvcli.as_tensor(producer)
        assert producer.deleted == 0
    producer = Producer(IMAGE.copy())
    tensor = cvcli.as_tensor(producer)
    with pytest.raises(TensorError, match="must return an unused capsule"):
        cvcli.as_tensor(producer)
    with pytest.raises(TensorError, match="layout must name"):
        cvcli.as_tensor(Producer(IMAGE.copy()), "HW")
    assert_same(tensor.numpy(), IMAGE)


def test_what_the_producer_refuses_is_told():
    class Refusing(Producer):
        def __dlpack__(self, **options):
            raise BufferError("it is on the moon")

    with pytest.raises(TensorError, match=r"can't be shared \(it is on the moon\)"):
        cvcli.as_tensor(Refusing(IMAGE.copy()))


def test_the_read_only_flag():
    tensor = cvcli.as_tensor(Producer(IMAGE.copy(), flags=1))
    with pytest.raises(TensorError, match="read-only"):
        cvcli.flip(cvcli.as_tensor(IMAGE), 0, out=tensor)


@pytest.mark.parametrize("dtype", ("uint8", "int16", "float16", "float64", "bool"))
def test_torch_and_back(dtype):
    torch = pytest.importorskip("torch")
    theirs = torch.ones((9, 11, 3), dtype=getattr(torch, dtype))
    tensor = cvcli.as_tensor(theirs)
    assert (tensor.pointer, tensor.dtype, tensor.layout) == (theirs.data_ptr(), dtype, "HWC")
    part = cvcli.as_tensor(theirs[2:, 3:])
    assert part.pointer == theirs[2:, 3:].data_ptr()
    assert part.strides == tuple(n * theirs.element_size() for n in theirs.stride())
    back = torch.from_dlpack(part)
    assert back.data_ptr() == part.pointer and back.stride() == theirs.stride()
    theirs[:] = 0
    assert not back.any() and not np.asarray(tensor).any()
    alive = weakref.ref(part.buffer)
    del part
    gc.collect()
    assert alive() is not None
    del back
    gc.collect()
    assert alive() is None


def test_torch_refusals_are_told():
    torch = pytest.importorskip("torch")
    with pytest.raises(TensorError, match=r"gradient.*detach"):
        cvcli.as_tensor(torch.ones(3, 3, requires_grad=True))
    with pytest.raises(TensorError, match="bfloat16"):
        cvcli.as_tensor(torch.ones(3, 3, dtype=torch.bfloat16))
    with pytest.raises(TensorError, match="complex64"):
        cvcli.as_tensor(torch.ones(3, 3, dtype=torch.complex64))


def test_numpy_takes_a_view():
    tensor = cvcli.flip(cvcli.as_tensor(IMAGE), -1)
    view = np.from_dlpack(tensor)
    assert view.ctypes.data == tensor.pointer and view.flags.writeable
    assert_same(view.copy(), FLIPPED)
    assert tensor.__dlpack_device__() == (1, 0)
    wide = noise((9, 40, 3), "uint16")
    part = np.from_dlpack(cvcli.as_tensor(wide[:, 5:25]))
    assert np.shares_memory(part, wide) and part.strides == wide[:, 5:25].strides
    assert np.from_dlpack(cvcli.as_tensor(np.zeros((0, 4, 3), np.uint8))).shape == (0, 4, 3)


def test_numpy_waits_for_the_writer():
    big = noise((3000, 2000, 3), "float32")
    for _ in range(5):
        out = cvcli.gamma_contrast(cvcli.as_tensor(big), 0, gain=0, stream=cvcli.Stream("cpu"))
        assert not np.from_dlpack(out).any()


def test_read_only_memory_needs_a_new_consumer():
    array = IMAGE.copy()
    array.flags.writeable = False
    tensor = cvcli.as_tensor(array)
    assert not np.from_dlpack(tensor).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__()
    with pytest.raises(BufferError, match="read-only"):
        tensor.__dlpack__(max_version=(0, 8))


def test_copies_and_other_devices():
    tensor = cvcli.as_tensor(IMAGE)
    copy = np.from_dlpack(tensor, copy=True)
    assert not np.shares_memory(copy, IMAGE)
    assert_same(copy.copy(), IMAGE)
    flags = Versioned.from_address(
        _pointer(c := tensor.__dlpack__(max_version=(1, 0), copy=True), VERSIONED)
    ).flags
    assert flags == 2 and c is not None
    with pytest.raises(BufferError, match="packed"):
        cvcli.as_tensor(IMAGE[:, 1:]).__dlpack__(copy=True)
    for device in ((2, 0), (10, 0)):
        with pytest.raises(BufferError, match="can't be put on device"):
            tensor.__dlpack__(dl_device=device)
    assert np.shares_memory(np.from_dlpack(tensor, device="cpu"), IMAGE)
    for stream in (0, 1, 2, 77):
        with pytest.raises(BufferError, match="stream must be None"):
            tensor.__dlpack__(stream=stream)
    tensor.__dlpack__(stream=-1)


@pytest.mark.parametrize("version", (None, (1, 0), (1, 3)))
def test_a_capsule_that_nobody_takes_frees_itself(version):
    tensor, before = cvcli.flip(cvcli.as_tensor(IMAGE), 0), len(lend._lent)
    capsule = tensor.__dlpack__(max_version=version)
    assert len(lend._lent) == before + 1
    alive = weakref.ref(tensor.buffer)
    del tensor
    gc.collect()
    assert alive() is not None
    del capsule
    gc.collect()
    assert alive() is None and len(lend._lent) == before


def test_a_capsule_that_is_dropped_by_an_exception_keeps_it():
    tensor = cvcli.as_tensor(IMAGE)
    with pytest.raises(TypeError, match="int"):
        int(tensor.__dlpack__(), "x", 3, 4)
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match="add"):
        torch.add(torch.from_dlpack(tensor), "x")
    assert not lend._lent


@pytest.mark.parametrize("where", ("here", "in a thread"))
def test_a_deleter_may_come_from_anywhere_and_twice(where):
    tensor = cvcli.as_tensor(IMAGE.copy())
    capsule = tensor.__dlpack__()
    managed = Managed.from_address(_pointer(capsule, LEGACY))
    _rename(capsule, USED)
    # Without Python's lock, as a library's own thread would.
    deleter, address = CFUNCTYPE(None, c_void_p)(managed.deleter), ctypes.addressof(managed)
    alive = weakref.ref(tensor.buffer)
    del tensor, managed, capsule
    gc.collect()
    assert alive() is not None

    def delete():
        deleter(address)
        deleter(address)

    if where == "here":
        delete()
    else:
        thread = threading.Thread(target=delete)
        thread.start()
        thread.join()
    gc.collect()
    assert alive() is None


def test_a_process_may_end_with_loans_out():
    code = """
import numpy as np, cvcli
x = cvcli.as_tensor(np.zeros((4, 4, 3), np.uint8))
view, capsule = np.from_dlpack(x), x.__dlpack__()
import builtins; builtins.keep = (view, capsule, np.from_dlpack(x))
print("fine")
"""
    assert fresh_python(code) == "fine"


def test_loans_outlive_the_names_of_the_module_that_keeps_them():
    """Python takes modules down before what consumers hold; nothing else keeps a loan's memory."""
    code = """
import builtins, gc, weakref
import numpy as np, cvcli
from cvcli.core import lend
builtins.keep = np.from_dlpack(cvcli.as_tensor(np.zeros((4, 4, 3), np.uint8)))
loans = [weakref.ref(loan) for loan in lend._lent.values()]
vars(lend).clear()
gc.collect()
print(len(loans), *[loan() is not None for loan in loans])
"""
    assert fresh_python(code) == "1 True"


def test_many_loans_do_not_add_up():
    tensor = cvcli.as_tensor(IMAGE)
    for _ in range(2000):
        np.from_dlpack(tensor)
        tensor.__dlpack__()
    assert not lend._lent
