"""torch.xpu._gpu_trace: ten points at which a program's functions are called, with the addresses of what they are about."""
import gc
import unittest
from unittest import mock

import harness  # noqa: F401  (chooses the devices)
import torch
from torch.xpu import _gpu_trace

POINTS = {
    "event_creation": "EventCreationCallbacks",
    "event_deletion": "EventDeletionCallbacks",
    "event_record": "EventRecordCallbacks",
    "event_wait": "EventWaitCallbacks",
    "memory_allocation": "MemoryAllocationCallbacks",
    "memory_deallocation": "MemoryDeallocationCallbacks",
    "stream_creation": "StreamCreationCallbacks",
    "device_synchronization": "DeviceSynchronizationCallbacks",
    "stream_synchronization": "StreamSynchronizationCallbacks",
    "event_synchronization": "EventSynchronizationCallbacks",
}


class GpuTraceTest(unittest.TestCase):
    def setUp(self):
        torch._C._activate_gpu_trace()
        torch.xpu.synchronize()
        gc.collect()
        self.called = {}
        for point in POINTS:
            self.called[point] = mock.Mock()
            getattr(_gpu_trace, f"register_callback_for_{point}")(self.called[point])

    def tearDown(self):
        for registry in POINTS.values():
            getattr(_gpu_trace, registry).callback_list.clear()

    def test_the_life_of_an_event(self):
        event = torch.xpu.Event()
        self.called["event_creation"].assert_not_called()
        event.record()
        address = event.sycl_event
        self.called["event_creation"].assert_called_once_with(address)
        self.called["event_record"].assert_called_once_with(address, torch.xpu.current_stream().sycl_queue)
        event.wait()
        self.called["event_wait"].assert_called_once_with(address, torch.xpu.current_stream().sycl_queue)
        event.synchronize()
        self.called["event_synchronization"].assert_called_once_with(address)
        self.called["event_deletion"].assert_not_called()
        del event
        gc.collect()
        self.called["event_deletion"].assert_called_once_with(address)

    def test_an_event_that_was_never_recorded(self):
        event = torch.xpu.Event()
        del event
        for point in ("event_creation", "event_deletion"):
            self.called[point].assert_not_called()

    def test_generic_events(self):
        event = torch.Event("xpu")
        event.record()
        self.called["event_record"].assert_called_once_with(event.event_id, torch.xpu.current_stream().sycl_queue)

    def test_an_event_of_another_stream(self):
        stream, event = torch.xpu.Stream(), torch.xpu.Event()
        event.record(stream)
        self.called["event_record"].assert_called_once_with(event.sycl_event, stream.sycl_queue)

    def test_synchronisations(self):
        torch.xpu.synchronize()
        self.called["device_synchronization"].assert_called_once_with()
        stream = torch.xpu.Stream()
        self.called["stream_synchronization"].reset_mock()
        stream.synchronize()
        self.called["stream_synchronization"].assert_called_once_with(stream.sycl_queue)

    def test_memory(self):
        tensor = torch.empty(1000, device="xpu")
        address = tensor.data_ptr()
        self.called["memory_allocation"].assert_called_once_with(address)
        self.called["memory_deallocation"].assert_not_called()
        del tensor
        self.called["memory_deallocation"].assert_called_once_with(address)

    def test_a_function_that_fails_does_no_harm(self):
        _gpu_trace.register_callback_for_memory_allocation(mock.Mock(side_effect=KeyError("on purpose")))
        with self.assertLogs("torch._utils", level="ERROR") as logs:
            tensor = torch.ones(3, device="xpu")
        self.assertIn("on purpose", "".join(logs.output))
        self.assertEqual(tensor.sum().item(), 3)
        self.called["memory_allocation"].assert_called()

    def test_a_function_may_use_the_device(self):
        seen = []

        def again(address):
            if not seen:
                seen.append(address)
                self.assertEqual(torch.ones(2, device="xpu").sum().item(), 2)

        _gpu_trace.register_callback_for_memory_allocation(again)
        torch.empty(10, device="xpu")
        self.assertEqual(len(seen), 1)


if __name__ == "__main__":
    unittest.main(verbosity=2)
