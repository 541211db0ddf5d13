"""PyTorch on a device whose every time is programmed: events, profiles and recordings have exactly these."""
import tempfile
import unittest
from pathlib import Path

import harness

# Every operator that runs as a function of the host takes 1.234 ms, and submitting takes no time.
PROGRAM = """
host_function submit=0us launch=0us duration=1234us
kernel submit=0us launch=0us duration=1234us
event submit=0us
"""

# Between the operators the host sleeps: no time of the device's.
EVENTS = """
import time, torch
a = torch.ones(8, 8, device="xpu")
events = [torch.xpu.Event(enable_timing=True) for _ in range(4)]
events[0].record()
a @ a
events[1].record()
time.sleep(0.02)
a + a
events[2].record()
(a @ a) + a
events[3].record()
torch.xpu.synchronize()
print([round(events[i].elapsed_time(events[i + 1]), 6) for i in range(3)])
"""

PROFILE = """
import json, sys, torch
from torch.profiler import profile, ProfilerActivity
a = torch.ones(8, 8, device="xpu")
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]) as profiler:
    for _ in range(3):
        (a @ a) + a
    torch.xpu.synchronize()
kernels = [event for event in profiler.events() if event.device_type == torch.autograd.DeviceType.CUDA]
print(len(kernels), {round(kernel.time_range.elapsed_us()) for kernel in kernels})
"""


class SimTest(unittest.TestCase):
    def run_on_sim(self, source):
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "program.txt"
            program.write_text(PROGRAM, encoding="utf-8")
            finished = harness.run_python(source, XPU_TORCH_DRIVER="sim", XPU_DRIVER=None, XPU_SIM_PROGRAM=program)
        self.assertEqual(finished.code, 0, finished)
        return finished.stdout.strip().splitlines()[-1]

    def test_events_have_the_programmed_times(self):
        self.assertEqual(self.run_on_sim(EVENTS), "[1.234, 1.234, 2.468]")

    def test_the_profile_has_the_programmed_times(self):
        self.assertEqual(self.run_on_sim(PROFILE), "6 {1234}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
