"""Devices, streams and memory under the names of torch.xpu.

A device is an index, "xpu", "xpu:1", None (the calling thread's current one), or an object with the attributes type and index.
"""

import re
from typing import Any

from . import _core
from ._core import DeviceProperties, Stream
from ._errors import InvalidArgumentError

Device = int | str | None | Any
"""What names a device."""


def device_index(device: Device) -> int:
    """The index of a device; called by the binary module, too."""
    if device is None:
        return _core.current_device()
    if isinstance(device, int) and not isinstance(device, bool):
        return device
    if isinstance(device, str):
        match = re.fullmatch(r"xpu(?::(\d+))?", device)
        if match:
            return _core.current_device() if match[1] is None else int(match[1])
    elif getattr(device, "type", None) == "xpu":
        index = getattr(device, "index", None)
        return _core.current_device() if index is None else int(index)
    raise InvalidArgumentError(f"Expected a xpu device, but got: {device}")


def init() -> None:
    """Starts the runtime now instead of at the first use; nothing when it has started."""
    _core.initialize()


def device_count() -> int:
    """Initialises nothing. Raises where devices cannot be counted, for one because XPU_VISIBLE_DEVICES makes no sense."""
    return _core.device_count()


def current_device() -> int:
    """The calling thread's device: 0 at first."""
    return _core.current_device()


def set_device(device: Device) -> None:
    """A negative index changes nothing."""
    _core.set_device(device_index(device))


def get_device_properties(device: Device = None) -> DeviceProperties:
    """Initialises nothing; equal for two calls."""
    return _core.device_properties(device_index(device))


def get_device_name(device: Device = None) -> str:
    """Initialises nothing."""
    return get_device_properties(device).name


def mem_get_info(device: Device = None) -> tuple[int, int]:
    """Free and total memory, in bytes."""
    return _core.memory_info(device_index(device))


def synchronize(device: Device = None) -> None:
    """Waits for everything on every stream of the device, and raises the first error of that work."""
    _core.synchronize(device_index(device))


def current_stream(device: Device = None) -> Stream:
    """The calling thread's stream: the default one at first."""
    return _core.current_stream(device_index(device))


def default_stream(device: Device = None) -> Stream:
    """The device's default stream."""
    return _core.default_stream(device_index(device))
