"""Gates on cost, on the null driver: instructions (callgrind), bytes of file, memory. Never absolute times: the machines are shared and noisy."""
import re
import sys
import unittest

from harness import BIN, LAYER, EndToEndTest, needs, null_driver, record_command, report, run

WORKLOAD = BIN / "xpu_test_workload"
FEW, MANY = 20_000, 60_000


def result_of(finished, key):
    found = re.search(rf"\b{key}=([-\d.]+)".encode(), finished.stdout)
    if found is None:
        raise AssertionError(f"no {key}= in the workload's output: {finished}")
    return float(found.group(1))


@needs("valgrind")
class InstructionGates(EndToEndTest):
    def instructions(self, launches, *options, recorded=True, environment=None):
        """Instructions that the program's process executes for `launches` launches."""
        output = self.folder / f"callgrind.{launches}"
        program = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", "--quiet", WORKLOAD, "launch", launches, 1000]
        recording = self.folder / f"run{launches}.xpu"
        command = record_command(recording, program, *options) if recorded else program
        finished = run(command, environment or null_driver(), timeout=300)
        self.assertEqual(finished.code, 0, finished)
        if recorded:
            books = report(recording)["conservation"]
            self.assertGreaterEqual(books["recorded"], launches)
            self.assertEqual((books["lost"], books["unexplained"], books["untimed"]), (0, 0, 0), books)
        totals = re.search(rb"^(?:summary|totals): (\d+)", output.read_bytes(), re.MULTILINE)
        return int(totals.group(1))

    def per_launch(self, *options, **more):
        few, many = (self.instructions(launches, *options, **more) for launches in (FEW, MANY))
        return (many - few) / (MANY - FEW)

    def test_added_instructions_per_launch(self):
        base = self.per_launch(recorded=False)
        device_only = self.per_launch("--device-only") - base
        standard = self.per_launch() - base
        print(f"\ninstructions per launch: untraced {base:.0f}, --device-only +{device_only:.0f}, default +{standard:.0f}")
        self.assertLessEqual(device_only, 1000)
        self.assertLessEqual(standard, 1800)

    def test_a_layer_that_does_not_record_costs_nothing(self):
        base = self.per_launch(recorded=False)
        idle = self.per_launch(recorded=False, environment=null_driver(OPENCL_LAYERS=LAYER))
        print(f"\ninstructions per launch: untraced {base:.1f}, layer loaded and not recording {idle - base:+.1f}")
        self.assertLessEqual(abs(idle - base), 2)


class MemoryAndSizeGates(EndToEndTest):
    def record(self, name, *workload, options=(), **variables):
        recording = self.folder / f"{name}.xpu"
        finished = run(record_command(recording, [WORKLOAD, *workload], *options), null_driver(**variables), timeout=240)
        self.assertEqual(finished.code, 0, finished)
        return finished, recording

    def complete_recording(self, name, *workload):
        """A recording without a loss. This program launches faster than any real one; a recorder that a busy disk holds up for a quarter of a second
        then loses records. It counts them, and the size of an incomplete file says nothing: three runs, of which one has to be complete."""
        for attempt in range(3):
            _, recording = self.record(f"{name}{attempt}", *workload)
            books = report(recording)["conservation"]
            self.assertEqual((books["recorded"] + books["lost"], books["unexplained"]), (books["submitted"], 0), books)
            if not books["lost"]:
                return recording
            print(f"\nnot complete: {books['lost']} of {books['submitted']} lost")
        raise AssertionError(f"no run of three was complete: {books}")

    def test_bytes_of_file_per_launch(self):
        launches = 1_000_000
        recording = self.complete_recording("size", "launch", launches, 1000)
        per_launch = recording.stat().st_size / launches
        print(f"\nbytes of file per launch: {per_launch:.1f}")
        self.assertLessEqual(per_launch, 20)

    def test_memory_is_flat_without_synchronisation(self):
        one, _ = self.record("one", "nosync", 1_000_000, 0)
        five, recording = self.record("five", "nosync", 5_000_000, 0)
        books = report(recording)["conservation"]
        self.assertEqual(books["unexplained"], 0, books)
        first, second = result_of(one, "rss_kb"), result_of(five, "rss_kb")
        print(f"\npeak resident: {first / 1024:.1f} MiB at 1 M launches, {second / 1024:.1f} MiB at 5 M; page faults {result_of(five, 'minor_faults'):.0f}")
        self.assertLessEqual(second - first, 72 * 1024, "memory grows with the run")
        # The ready chunks are touched once each: at most a quarter of the default --max-live of 1 GiB, in pages of 4 KiB, and the program's own.
        self.assertLessEqual(result_of(five, "minor_faults"), (256 << 20) / 4096 + 20_000)

    def test_a_blocking_call_does_not_walk_another_queues_backlog(self):
        # The program asks the driver how many calls it got, before and after its blocking write, with 20,000 commands of another queue pending.
        workload = ["twoq", 20_000, 20_000]
        variables = {"XPU_NULL_DURATION_NS": 20_000, "XPU_NULL_CALLS": self.folder / "calls"}
        finished, recording = self.record("twoq", *workload, **variables)
        own = run([WORKLOAD, *workload], null_driver(**variables), timeout=120)
        base, ours = result_of(own, "write_thread_calls_max"), result_of(finished, "write_thread_calls_max")
        print(f"\ndriver calls inside a blocking call: untraced {base:.0f}, recorded {ours:.0f}")
        self.assertLessEqual(ours - base, 64)
        self.assertEqual(report(recording)["conservation"]["unexplained"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
