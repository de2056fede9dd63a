"""Which devices this machine has, asked of the CUDA driver without importing CuPy."""

import ctypes
import importlib.util
import re
import sys
from dataclasses import dataclass
from functools import cache
from threading import Lock

from cvcli.devices.base import Device
from cvcli.errors import DeviceError

_DEVICES: dict[str, Device] = {}
_LOCK = Lock()
_COMPUTE_MAJOR, _COMPUTE_MINOR = 75, 76
EVERY_GPU = "cuda:all"
"""Stands for all GPUs of the machine where work can be shared among several."""


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU: name, compute capability as ``(major, minor)``, memory in bytes."""

    index: int
    name: str
    compute: tuple[int, int]
    memory: int


@cache
def driver() -> ctypes.CDLL | None:
    """Return the initialised CUDA driver library, or None where there is none."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        library = ctypes.CDLL(name)
    except OSError:
        return None
    return library if library.cuInit(0) == 0 else None


@cache
def driver_version() -> tuple[int, int] | None:
    """Return the newest CUDA version the driver supports, such as ``(13, 0)``."""
    library = driver()
    if library is None:
        return None
    number = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(number))
    return number.value // 1000, number.value % 1000 // 10


def gpu_count() -> int:
    """Return the number of GPUs the driver shows, 0 without a driver."""
    library = driver()
    number = ctypes.c_int()
    if library is None or library.cuDeviceGetCount(ctypes.byref(number)) != 0:
        return 0
    return number.value


def describe_gpu(index: int) -> Gpu:
    """Return what the driver says of one GPU."""
    library = driver()
    if library is None or index >= gpu_count():
        raise DeviceError(f"cuda:{index}: there is no such GPU")
    name, memory = ctypes.create_string_buffer(128), ctypes.c_size_t()
    major, minor, handle = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    library.cuDeviceGet(ctypes.byref(handle), index)
    library.cuDeviceGetName(name, 128, handle)
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), handle)
    library.cuDeviceGetAttribute(ctypes.byref(major), _COMPUTE_MAJOR, handle)
    library.cuDeviceGetAttribute(ctypes.byref(minor), _COMPUTE_MINOR, handle)
    return Gpu(index, name.value.decode(), (major.value, minor.value), memory.value)


def cupy_installed() -> bool:
    """Return whether CuPy can be imported, without importing it."""
    return importlib.util.find_spec("cupy_backends") is not None


def cupy_tip() -> str:
    """Return the command that installs CuPy for this machine's driver."""
    version = driver_version()
    extra = "cuda13" if version is not None and version >= (13, 0) else "cuda12"
    return f"pip install 'cvcli[{extra}]'"


def default_device_name() -> str:
    """Return ``cuda:0`` where a GPU and CuPy are there to use, else ``cpu``."""
    return "cuda:0" if cupy_installed() and gpu_count() else "cpu"


def every_gpu() -> list[str]:
    """Return the names of all GPUs, of one at least, so that the first may say what is wrong."""
    return [f"cuda:{index}" for index in range(max(1, gpu_count()))]


def parse_device(name: str) -> str:
    """Return ``cpu`` or ``cuda:N`` for ``auto``, ``cpu``, ``cuda`` or ``cuda:N``."""
    if name == "auto":
        return default_device_name()
    match = re.fullmatch(r"cpu|cuda(?::(\d+))?", name)
    if match is None:
        raise DeviceError(f"device must be auto, cpu, cuda or cuda:N, got {name!r}")
    return name if name == "cpu" else f"cuda:{int(match[1] or 0)}"


def open_device(name: str = "auto") -> Device:
    """Return the one Device object of that name, started on first use."""
    name = parse_device(name)
    with _LOCK:
        if name not in _DEVICES:
            _DEVICES[name] = _start(name)
        return _DEVICES[name]


def _start(name: str) -> Device:
    if name == "cpu":
        from cvcli.devices.cpu import CpuDevice

        return CpuDevice()
    index = int(name.partition(":")[2])
    if driver() is None:
        raise DeviceError(
            f"{name}: there is no NVIDIA driver on this machine",
            tip="use --device cpu, or install the driver",
        )
    if index >= gpu_count():
        raise DeviceError(f"{name}: the driver shows {gpu_count()} GPUs")
    if not cupy_installed():
        raise DeviceError(f"{name}: CuPy is not installed", tip=cupy_tip())
    try:
        from cvcli.devices.cuda import CudaDevice

        return CudaDevice(index)
    except (ImportError, RuntimeError) as error:
        # A CUDA library that is missing or does not match the driver shows here, as either.
        raise DeviceError(f"{name}: CUDA can't be started ({error})", tip=cupy_tip()) from None
