"""torch.profiler over the device: what its traces and tables hold, and that they agree with a recording of the same run."""
import collections
import json
import os
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import harness
import torch
from torch.profiler import ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.XPU]
XPU = Path(sys.executable).with_name("xpu")


def train_step(net, optimizer, inputs, labels):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(net(inputs), labels).backward()
    optimizer.step()


def make_training():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)).to("xpu")
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    inputs, labels = torch.randn(16, 32, device="xpu"), torch.randint(0, 4, (16,), device="xpu")
    return lambda: train_step(net, optimizer, inputs, labels)


def trace_of(profiler):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return json.loads(path.read_text(encoding="utf-8"))


def of_kind(trace, kind):
    return [event for event in trace["traceEvents"] if event.get("cat") == kind]


class ProfilerTest(unittest.TestCase):
    def test_activities(self):
        self.assertEqual(torch.profiler.supported_activities(), {ProfilerActivity.CPU, ProfilerActivity.XPU})

    def test_every_kernel_belongs_to_its_operator(self):
        step = make_training()
        step()
        with profile(activities=BOTH) as profiler:
            with record_function("one step"):
                step()
            torch.xpu.synchronize()
        trace = trace_of(profiler)
        kernels, calls = of_kind(trace, "kernel"), of_kind(trace, "xpu_runtime")
        self.assertGreater(len(kernels), 10)
        operators = {event["args"]["External id"]: event["name"] for event in of_kind(trace, "cpu_op") if "External id" in event["args"]}
        for kernel in kernels:
            operator = operators[kernel["args"]["External id"]]
            if kernel["name"].startswith("fallback "):
                overload = kernel["name"].removeprefix("fallback ").split(".")[0]
                self.assertEqual(operator, overload)
        by_correlation = {call["args"]["correlation"]: call for call in calls}
        for kernel in kernels:
            self.assertIn(kernel["args"]["correlation"], by_correlation)
        starts = {event["id"] for event in of_kind(trace, "ac2g") if event["ph"] == "s"}
        ends = {event["id"] for event in of_kind(trace, "ac2g") if event["ph"] == "f"}
        self.assertEqual(starts, ends)
        self.assertLessEqual({kernel["args"]["correlation"] for kernel in kernels}, ends)
        for kernel in kernels:
            arguments = kernel["args"]
            self.assertGreaterEqual(arguments["stream"], 1)
            self.assertEqual((len(arguments["grid"]), len(arguments["block"])), (3, 3))
            self.assertGreaterEqual(arguments["clock error (ns)"], 0)
            self.assertIn(arguments["kind"], ("kernel", "fallback"))
        books = trace["xpu_commands"]
        self.assertEqual(books["submitted"], books["completed"])
        self.assertEqual((books["lost"], books["pending"], books["dropped"]), (0, 0, 0))
        self.assertEqual(books["submitted"], len(kernels) + len(of_kind(trace, "gpu_memcpy")) + len(of_kind(trace, "gpu_memset")))
        self.assertEqual(len(trace["deviceProperties"]), torch.xpu.device_count())

    def test_copies_and_their_bytes(self):
        source = torch.randn(1000)
        with profile(activities=BOTH) as profiler:
            there = source.to("xpu")
            again = there.clone()
            back = again.cpu()
        self.assertTrue(torch.equal(back, source))
        copies = of_kind(trace_of(profiler), "gpu_memcpy")
        self.assertEqual([copy["name"].split(" ")[1] for copy in sorted(copies, key=lambda copy: copy["ts"])], ["HtoD", "DtoD", "DtoH"])
        self.assertEqual({copy["args"]["bytes"] for copy in copies}, {4000})

    def test_tables(self):
        step = make_training()
        with profile(activities=BOTH, profile_memory=True, record_shapes=True, with_stack=True) as profiler:
            step()
            held = torch.empty(1 << 20, device="xpu")
            torch.xpu.synchronize()
        del held
        table = profiler.key_averages().table(sort_by="self_xpu_time_total")
        for heading in ("Self XPU", "XPU total", "XPU Mem", "Self XPU Mem"):
            self.assertIn(heading, table)
        by_name = {event.key: event for event in profiler.key_averages()}
        self.assertGreaterEqual(by_name["aten::empty"].self_device_memory_usage, 4 << 20)
        self.assertGreater(by_name["aten::addmm"].device_time_total, 0)

    def test_the_processor_alone_has_no_rows_of_the_device(self):
        step = make_training()
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            step()
        trace = trace_of(profiler)
        self.assertFalse(of_kind(trace, "kernel") + of_kind(trace, "xpu_runtime"))
        self.assertNotIn("xpu_commands", trace)

    def test_the_device_alone(self):
        step = make_training()
        with profile(activities=[ProfilerActivity.XPU]) as profiler:
            step()
            torch.xpu.synchronize()
        self.assertGreater(len(of_kind(trace_of(profiler), "kernel")), 10)

    def test_schedules_and_sessions_in_a_row(self):
        step = make_training()
        step()
        traces = []
        with profile(activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
                     on_trace_ready=lambda profiler: traces.append(trace_of(profiler))) as profiler:
            for _ in range(8):
                step()
                profiler.step()
        with profile(activities=BOTH) as once:
            step()
        of_one_step = len(of_kind(trace_of(once), "kernel"))
        self.assertEqual([len(of_kind(trace, "kernel")) for trace in traces], [2 * of_one_step] * 2)

    def test_threads_and_the_thread_of_autograd(self):
        steps = [make_training() for _ in range(3)]
        with profile(activities=BOTH) as profiler:
            threads = [threading.Thread(target=step) for step in steps]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            torch.xpu.synchronize()
        books = trace_of(profiler)["xpu_commands"]
        self.assertEqual((books["submitted"], books["lost"]), (books["completed"], 0))

    @unittest.skipIf(os.environ.get("XPU_HOST_EXECUTOR") == "pool", "links are the same, and it takes a while")
    def test_a_hundred_thousand_operators(self):
        ones = torch.ones(4, device="xpu")
        with profile(activities=BOTH, acc_events=True) as profiler:
            for _ in range(50_000):
                ones.add_(1.0)
                ones.mul_(0.5)
            torch.xpu.synchronize()
        kernels = [event for event in profiler.profiler.kineto_results.events() if event.device_type() == torch.autograd.DeviceType.CUDA]
        self.assertEqual(len(kernels), 100_000)
        self.assertEqual(sum(event.linked_correlation_id() != 0 for event in kernels), 100_000)


def range_around(trace, kernel):
    """The innermost annotated range around the call that launched it."""
    call = next(call for call in of_kind(trace, "xpu_runtime") if call["args"]["correlation"] == kernel["args"]["correlation"])
    around = [event for event in of_kind(trace, "user_annotation") if event["tid"] == call["tid"] and event["ts"] <= call["ts"]
              and call["ts"] + call["dur"] <= event["ts"] + event["dur"]]
    return max(around, key=lambda event: event["ts"])["name"] if around else None


# A program that profiles itself and prints what it saw of each kernel: its name, its operator, its duration.
RECORDED = """
import collections, json, sys, torch
from torch.profiler import profile, ProfilerActivity
net = torch.nn.Linear(64, 64).to("xpu")
inputs = torch.randn(32, 64, device="xpu")
net(inputs).sum().backward()
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.XPU]) as profiler:
    for _ in range(5):
        net(inputs).relu().sum().backward()
    torch.xpu.synchronize()
profiler.export_chrome_trace(sys.argv[1])
"""


class RecordingTest(unittest.TestCase):
    def test_recording_and_profile_hold_the_same_kernels(self):
        """Name, operator and duration of every kernel; the recording also has what happened outside of the profile."""
        with tempfile.TemporaryDirectory() as folder:
            recording, own, exported = (Path(folder) / name for name in ("run.xpu", "own.json", "recorded.json"))
            program = Path(folder) / "program.py"
            program.write_text(RECORDED, encoding="utf-8")
            finished = harness.run([XPU, "record", "-o", recording, "--", sys.executable, program, own])
            self.assertEqual(finished.code, 0, finished)
            for command in ([XPU, "check", recording], [XPU, "export", "--format", "chrome", "-o", exported, recording]):
                finished = harness.run(command)
                self.assertEqual(finished.code, 0, finished)
            profiled = json.loads(own.read_text(encoding="utf-8"))
            recorded = json.loads(exported.read_text(encoding="utf-8"))

        operators = {event["args"]["External id"]: event["name"] for event in of_kind(profiled, "cpu_op") if "External id" in event["args"]}
        in_profile = collections.Counter(
            (kernel["name"], operators[kernel["args"]["External id"]], round(kernel["dur"] * 1000)) for kernel in of_kind(profiled, "kernel"))
        in_recording = collections.Counter(
            (kernel["name"], range_around(recorded, kernel), round(kernel["dur"] * 1000)) for kernel in of_kind(recorded, "kernel"))
        missing = in_profile - in_recording
        self.assertGreater(sum(in_profile.values()), 20)
        self.assertFalse(missing, f"not in the recording: {list(missing)[:5]}; there: {list(in_recording)[:5]}")


if __name__ == "__main__":
    unittest.main(verbosity=2)
