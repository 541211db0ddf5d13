"""Puts what PyTorch's own torch.xpu needs into torch._C, and loads torch.xpu again on top of it.

A CPU build of PyTorch has the whole of torch.xpu in Python; what is missing are some forty names of torch._C.
"""
import atexit
import importlib
import sys
import time

import xpu

_native = None

# torch.xpu and those of its modules that look at torch._C while they are imported.
MODULES = ("torch.xpu._utils", "torch.xpu.streams", "torch.xpu.graphs", "torch.xpu.memory", "torch.xpu.random", "torch.xpu")


def take_over(torch, native):
    """From now on torch.xpu is the device's. What was queued or seeded before is kept."""
    global _native
    _native = native
    former = sys.modules["torch.xpu"]
    queued_calls, seeds = former._queued_calls, former._lazy_seed_tracker

    from . import _classes
    torch._C.__dict__.update(names_for_torch(native, _classes))
    for name in MODULES:
        importlib.reload(sys.modules[name])

    module = sys.modules["torch.xpu"]
    module._queued_calls, module._lazy_seed_tracker = queued_calls, seeds
    module.default_stream = default_stream
    module.__all__.append("default_stream")
    use_gloo_by_default()
    keep_backward_on_its_thread(torch)
    atexit.register(let_autograd_finish)


def keep_backward_on_its_thread(torch):
    """On the importing thread backward passes run where they are called, as they do on the CPU, and not on autograd's thread for the device.

    To hand a pass over and wait for it costs more than a small network's whole backward pass, and gains nothing: kernels are submitted without waiting
    anyway. A program that wants it otherwise says torch.autograd.set_multithreading_enabled(True).
    """
    torch._C._set_multithreading_enabled(False)


def let_autograd_finish():
    """At exit the interpreter's lock is given away for a moment.

    The thread of autograd that ran the last backward pass for the device may still have objects of Python's to drop. It waits for the lock, and
    where the interpreter is finalised instead its end ends the process with an abort.
    """
    time.sleep(0.01)


def names_for_torch(native, classes):
    """Every name of torch._C that torch.xpu uses."""
    return {
        "_has_xpu": True,
        "_XpuStreamBase": classes.StreamBase,
        "_XpuEventBase": classes.EventBase,
        "_XpuDeviceProperties": xpu.DeviceProperties,
        "_XPUuuid": xpu.Uuid,
        "_XPUGraph": classes.Graph,
        "_XPUMemPool": native._XPUMemPool,
        "_xpu_XPUAllocator": native._xpu_XPUAllocator,
        "_xpu_init": initialize,
        "_xpu_isInBadFork": native.is_in_bad_fork,
        "_xpu_getDeviceCount": native.device_count,
        "_xpu_getDevice": native.get_device,
        "_xpu_setDevice": native.set_device,
        "_xpu_exchangeDevice": native.exchange_device,
        "_xpu_maybeExchangeDevice": native.exchange_device,
        "_xpu_canDeviceAccessPeer": native.can_access_peer,
        "_xpu_getArchFlags": architecture_flags,
        "_xpu_synchronize": native.synchronize,
        "_xpu_sleep": native.sleep,
        "_xpu_getCurrentStream": native.current_stream,
        "_xpu_getCurrentRawStream": native.current_raw_stream,
        "_xpu_setStream": native.set_stream,
        "_xpu_getStreamFromExternal": native.stream_from_external,
        "_xpu_isCurrentStreamCapturing": native.is_current_stream_capturing,
        "_xpu_emptyCache": native.empty_cache,
        "_xpu_memoryStats": native.memory_stats,
        "_xpu_resetPeakMemoryStats": native.reset_peak_memory_stats,
        "_xpu_resetAccumulatedMemoryStats": native.reset_accumulated_memory_stats,
        "_xpu_getMemoryInfo": native.memory_info,
        "_xpu_getMemoryFraction": native.memory_fraction,
        "_xpu_setMemoryFraction": native.set_memory_fraction,
        "_xpu_memorySnapshot": native.memory_snapshot,
        "_xpu_recordMemoryHistory": native.record_memory_history,
        "_xpu_customAllocator": native.custom_allocator,
        "_xpu_changeCurrentAllocator": native.change_current_allocator,
        "_xpu_getAllocator": native.current_allocator,
        "_xpu_beginAllocateCurrentThreadToPool": native.begin_allocate_current_thread_to_pool,
        "_xpu_endAllocateToPool": native.end_allocate_to_pool,
        "_xpu_releasePool": native.release_pool,
        "_xpu_graph_pool_handle": native.graph_pool_handle,
    }


def initialize():
    """The first use of a device: torch.xpu calls it once."""
    _native.init()
    module = sys.modules["torch.xpu"]
    module.default_generators = tuple(_native.default_generator(device) for device in range(_native.device_count()))
    module._get_device_properties = xpu.get_device_properties


def architecture_flags():
    """One name for what each device's kernels are compiled for, as PyTorch's builds list them."""
    names = {xpu.get_device_properties(device).type for device in range(_native.device_count())}
    return " ".join(sorted(names))


def default_stream(device=None):
    """The stream of a device that every thread has first. PyTorch has no such function for xpu yet.

    Args:
        device: a torch.device, its index or name; by default the current one.
    """
    module = sys.modules["torch.xpu"]
    module._lazy_init()
    stream_id, index, kind = _native.default_stream(module._get_device_index(device, optional=True))
    return module.Stream(stream_id=stream_id, device_index=index, device_type=kind)


def use_gloo_by_default():
    """torch.distributed would look for a library that only special builds have; gloo moves the bytes of host memory.

    Where a program names no backend PyTorch takes one for the accelerator alone. Data-parallel modules also compare facts in tensors of the CPU, so
    that one serves those as well.
    """
    from torch import distributed
    if not distributed.is_available() or distributed.is_xccl_available():
        return
    backend = distributed.Backend
    backend.default_device_backend_map["xpu"] = backend.GLOO
    if "xpu" not in backend.backend_capability[backend.GLOO]:
        backend.backend_capability[backend.GLOO].append("xpu")

    config = distributed.distributed_c10d.BackendConfig
    find_backends = config.__init__

    def find_backends_and_that_of_the_cpu(self, chosen):
        find_backends(self, chosen)
        if self.device_backend_map == {"xpu": backend.GLOO}:
            self.device_backend_map["cpu"] = self.device_backend_map["xpu"]

    config.__init__ = find_backends_and_that_of_the_cpu
