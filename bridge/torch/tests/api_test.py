"""The names of torch.xpu: everything that PyTorch's own front end promises is there, is callable, and takes the arguments that it should."""
import inspect
import unittest

import harness  # noqa: F401  (chooses the devices)
import torch
from torch.xpu import _gpu_trace

# Name -> parameters. Positions and names are what programs use.
SIGNATURES = {
    "can_device_access_peer": "device peer", "current_device": "", "current_stream": "device", "device_count": "", "empty_cache": "", "get_arch_list": "",
    "get_device_capability": "device", "get_device_name": "device", "get_device_properties": "device", "get_gencode_flags": "", "get_rng_state": "device",
    "get_rng_state_all": "", "get_stream_from_external": "data_ptr device", "init": "", "initial_seed": "", "is_available": "",
    "is_bf16_supported": "including_emulation", "is_initialized": "", "is_tf32_supported": "", "manual_seed": "seed", "manual_seed_all": "seed",
    "max_memory_allocated": "device", "max_memory_reserved": "device", "mem_get_info": "device", "memory_allocated": "device", "memory_reserved": "device",
    "memory_snapshot": "mempool_id", "memory_stats": "device", "memory_stats_as_nested_dict": "device", "reset_accumulated_memory_stats": "device",
    "reset_peak_memory_stats": "device", "seed": "", "seed_all": "", "set_device": "device", "set_rng_state": "new_state device",
    "set_rng_state_all": "new_states", "set_stream": "stream", "stream": "stream", "synchronize": "device", "get_per_process_memory_fraction": "device",
    "set_per_process_memory_fraction": "fraction device", "is_current_stream_capturing": "", "graph_pool_handle": "", "default_stream": "device",
    "make_graphed_callables": "callables sample_args num_warmup_iters allow_unused_input pool", "_lazy_init": "", "_is_compiled": "",
    "_exchange_device": "device", "_maybe_exchange_device": "device", "_set_stream_by_id": "stream_id device_index device_type", "_is_in_bad_fork": "",
}
CLASSES = {
    "Stream": "query synchronize wait_event wait_stream record_event priority_range stream_id device_index device_type device sycl_queue priority",
    "Event": "record wait query synchronize elapsed_time device sycl_event event_id",
    "StreamContext": "__enter__ __exit__",
    "device": "__enter__ __exit__",
    "device_of": "__enter__ __exit__",
    "_DeviceGuard": "__enter__ __exit__",
    "XPUGraph": "capture_begin capture_end instantiate replay reset pool enable_debug_mode debug_dump raw_xpu_graph raw_xpu_graph_exec",
    "graph": "__enter__ __exit__",
    "MemPool": "id allocator use_count snapshot",
    "XPUPluggableAllocator": "",
}
GPU_TRACE = ("event_creation", "event_deletion", "event_record", "event_wait", "memory_allocation", "memory_deallocation", "stream_creation",
             "device_synchronization", "stream_synchronization", "event_synchronization")
STATE = ("_initialized", "_tls", "_initialization_lock", "_queued_calls", "_lazy_seed_tracker", "default_generators")
ACCELERATOR = """
current_accelerator device_count is_available current_device_index set_device_index device_index current_stream set_stream synchronize
get_device_capability empty_cache empty_host_cache get_memory_info memory_stats memory_allocated max_memory_allocated memory_reserved max_memory_reserved
reset_peak_memory_stats reset_accumulated_memory_stats
""".split()
# What PyTorch's Python looks for in torch._C once it believes in the device.
NATIVE = """
_has_xpu _xpu_init _xpu_setDevice _xpu_exchangeDevice _xpu_maybeExchangeDevice _xpu_getDevice _xpu_getDeviceCount _xpu_getArchFlags _xpu_isInBadFork
_xpu_getCurrentStream _xpu_getCurrentRawStream _xpu_setStream _xpu_getStreamFromExternal _xpu_synchronize _xpu_emptyCache _xpu_memoryStats
_xpu_resetPeakMemoryStats _xpu_resetAccumulatedMemoryStats _xpu_memorySnapshot _xpu_recordMemoryHistory _xpu_getMemoryInfo _xpu_getMemoryFraction
_xpu_setMemoryFraction _xpu_canDeviceAccessPeer _xpu_getAllocator _xpu_changeCurrentAllocator _xpu_customAllocator _xpu_beginAllocateCurrentThreadToPool
_xpu_endAllocateToPool _xpu_releasePool _xpu_graph_pool_handle _xpu_isCurrentStreamCapturing _XpuDeviceProperties _XpuStreamBase _XpuEventBase _XPUGraph
_XPUMemPool _xpu_XPUAllocator
""".split()


class ApiTest(unittest.TestCase):
    def test_functions(self):
        for name, parameters in SIGNATURES.items():
            with self.subTest(name):
                function = getattr(torch.xpu, name)
                self.assertTrue(callable(function))
                if inspect.isfunction(function):
                    self.assertEqual(list(inspect.signature(function).parameters), parameters.split())

    def test_everything_public_is_known_and_there(self):
        for name in torch.xpu.__all__:
            self.assertTrue(hasattr(torch.xpu, name), name)

    def test_classes(self):
        for name, members in CLASSES.items():
            kind = getattr(torch.xpu, name, None) or getattr(torch.xpu.memory, name)
            self.assertTrue(inspect.isclass(kind), name)
            self.assertNotIn("dummy", repr(kind.__mro__).lower(), name)
            for member in members.split():
                self.assertTrue(hasattr(kind, member), f"{name}.{member}")

    def test_state_and_callbacks(self):
        for name in STATE:
            self.assertTrue(hasattr(torch.xpu, name), name)
        for name in GPU_TRACE:
            self.assertTrue(callable(getattr(_gpu_trace, f"register_callback_for_{name}")))

    def test_native_names(self):
        missing = [name for name in NATIVE if not hasattr(torch._C, name)]
        self.assertEqual(missing, [])
        self.assertIs(torch._C._has_xpu, True)

    def test_every_native_name_that_torch_xpu_mentions_is_there(self):
        import pathlib
        import re

        folder = pathlib.Path(torch.xpu.__file__).parent
        mentioned = {name for path in folder.glob("*.py") for name in re.findall(r"torch\._C\.(_[A-Za-z]*[xX][pP][uU]\w*)", path.read_text())}
        self.assertGreater(len(mentioned), 25)
        self.assertEqual(sorted(name for name in mentioned if not hasattr(torch._C, name)), [])

    def test_nothing_is_a_leftover_of_the_time_before(self):
        """Modules that were imported before the device was there hold the classes of now."""
        self.assertIs(torch.xpu.Stream, torch.xpu.streams.Stream)
        self.assertIs(torch.xpu.Event, torch.xpu.streams.Event)
        import torch._dynamo.device_interface as interfaces

        self.assertIs(interfaces.get_interface_for_device("xpu").Event, torch.xpu.Event)
        self.assertIs(interfaces.get_interface_for_device("xpu").Stream, torch.xpu.Stream)
        self.assertTrue(issubclass(torch.xpu.Stream, torch.Stream) and issubclass(torch.xpu.Event, torch.Event))

    def test_the_accelerator_module(self):
        for name in ACCELERATOR:
            self.assertTrue(callable(getattr(torch.accelerator, name)), name)

    def test_torchs_own_test_suite_sees_the_device(self):
        from torch.testing._internal import common_device_type, common_utils

        self.assertTrue(common_utils.TEST_XPU)
        self.assertEqual(common_device_type.XPUTestBase.device_type, "xpu")

    def test_what_is_not_there_says_so(self):
        try:
            torch.xpu.XPUGraph()
        except NotImplementedError as error:
            self.assertTrue(str(error))


if __name__ == "__main__":
    unittest.main(verbosity=2)
