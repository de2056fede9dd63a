"""Devices: where memory lives and kernels run. They see pointers and handles, never a Tensor."""

from cvcli.devices.base import Copy, Device, Functor, Kernel, Launch
from cvcli.devices.find import default_device_name, gpu_count, open_device

__all__ = [
    "Copy",
    "Device",
    "Functor",
    "Kernel",
    "Launch",
    "default_device_name",
    "gpu_count",
    "open_device",
]
