"""Programs that use libxpu itself, recorded as foreign programs are: every operation once, books that balance, times that are right."""
import functools
import os
import random
import re
import signal
import sys
import time
import unittest

from harness import (BIN, LAYER, POCL_ICD, XPU, EndToEndTest, dump, environment, finish, kill_group, needs, null_driver, pocl, record_command, report, run,
                     start)

WORKLOAD = BIN / "xpu_test_runtime"
WITH_OPENCL = BIN / "xpu_test_runtime_with_opencl"
PROFILED_OPENCL = BIN / "xpu_test_profile_opencl"
PATIENCE = 120
SANITIZERS = (b"Sanitizer", b"runtime error")
SEED = int(os.environ.get("XPU_KILL_SEED", random.randrange(1 << 32)))

HOST = {"adaptive": {"XPU_DRIVER": "host"},
        "pool": {"XPU_DRIVER": "host", "XPU_HOST_EXECUTOR": "pool"},
        "inline": {"XPU_DRIVER": "host", "XPU_HOST_EXECUTOR": "inline"}}
DEVICES = {**HOST, "sim": {"XPU_DRIVER": "sim"}}


def on_each(devices):
    """Runs a test once for each of them."""
    def decorate(test):
        @functools.wraps(test)
        def run_each(self):
            for name, variables in devices.items():
                with self.subTest(name):
                    test(self, variables)
        return run_each
    return decorate


class RuntimeTest(EndToEndTest):
    def record(self, variables, mode, *arguments, options=(), code=0, program=WORKLOAD, make_environment=environment):
        """The program's end, what it says it submitted (summed over its processes), and the report."""
        recording = self.folder / "run.xpu"
        # The programs leave objects to the end of the process on purpose.
        env = make_environment(ASAN_OPTIONS="detect_leaks=0", **variables)
        finished = run(record_command(recording, [program, *([mode] if mode else []), *arguments], *options), env, PATIENCE)
        for word in SANITIZERS:
            self.assertNotIn(word, finished.stdout + finished.stderr, finished)
        self.assertEqual((finished.code, finished.timed_out), (code, False), finished)
        printed = {}
        for key, value in re.findall(rb"(\w+) (\d+)(?= |$)", re.sub(rb"(?m)^\w+ \d+ (?=submitted)", b"", finished.stdout), re.MULTILINE):
            printed[key.decode()] = printed.get(key.decode(), 0) + int(value)
        checked = run([XPU, "check", recording], environment(), PATIENCE)
        self.assertEqual(checked.code, 0, checked)
        return finished, printed, report(recording)

    def kernel_calls(self, figures, *names):
        return sum(kernel["calls"] for kernel in figures["kernels"] if not names or kernel["name"] in names)


class WorkTest(RuntimeTest):
    ROUNDS = 250

    def assert_complete(self, figures, printed):
        self.assert_books_balance(figures, submitted=printed["submitted"])
        books = figures["conservation"]
        self.assertEqual((books["recorded"], books["lost"], books["pending"], books["untimed"]), (printed["submitted"], 0, 0, 0), books)

    @on_each(DEVICES)
    def test_every_operation_of_many_streams_is_there_once(self, variables):
        finished, printed, figures = self.record(variables, "work", self.ROUNDS)
        self.assertEqual(printed["submitted"], 4 * self.ROUNDS * 6)
        self.assert_complete(figures, printed)
        self.assertEqual(self.kernel_calls(figures, "add_work"), printed["launches"])
        self.assertEqual(self.kernel_calls(figures, "even round", "odd round"), printed["functions"])
        self.assertEqual(sum(copy["calls"] for copy in figures["copies"]), printed["copies"])
        self.assertEqual(sum(fill["calls"] for fill in figures["fills"]), printed["fills"])
        self.assertEqual({copy["route"] for copy in figures["copies"]}, {"host_to_device", "device_to_host"}, figures["copies"])
        self.assertEqual(len([queue for queue in figures["conservation"]["queues"] if queue["submitted"]]), 8)
        self.assertEqual(len(figures["devices"]), 1)
        self.assertEqual({row["name"]: row["calls"] for row in figures["api"] if row["name"] in ("xpu::Stream::launch", "xpu::Stream::run")},
                         {"xpu::Stream::launch": printed["launches"], "xpu::Stream::run": printed["functions"]})
        self.assertIn(b"0 lost -> ", finished.stderr.splitlines()[-1])

    @on_each(DEVICES)
    def test_one_stream_for_all_threads(self, variables):
        _, printed, figures = self.record(variables, "shared_stream", 1_000)
        self.assert_complete(figures, printed)
        self.assertEqual(self.kernel_calls(figures, "shared"), printed["launches"])
        self.assertEqual(self.kernel_calls(figures, "awaited"), printed["functions"])
        self.assertEqual(len([queue for queue in figures["conservation"]["queues"] if queue["submitted"]]), 1)

    def test_every_call_and_devices_only(self):
        for option in ("--api", "--device-only"):
            with self.subTest(option):
                _, printed, figures = self.record(HOST["adaptive"], "work", 50, options=[option])
                self.assert_complete(figures, printed)
                names = {row["name"] for row in figures["api"]}
                self.assertEqual("xpu::Event::record" in names, option == "--api", names)

    def test_what_was_submitted_while_recording_was_paused_is_filtered(self):
        _, printed, figures = self.record(HOST["adaptive"], "work", 50, options=["--start-paused"])
        books = figures["conservation"]
        self.assertEqual((books["submitted"], books["filtered"], books["unexplained"]), (0, printed["submitted"], 0), books)

    def test_kernels_that_were_not_asked_for_are_filtered(self):
        _, printed, figures = self.record(HOST["adaptive"], "work", 50, options=["--kernels", "^add_work$"])
        self.assert_books_balance(figures)
        self.assertEqual(figures["conservation"]["filtered"], printed["functions"])
        self.assertEqual(self.kernel_calls(figures), printed["launches"])

    @on_each(DEVICES)
    def test_failures_are_counted_where_they_happened(self, variables):
        _, printed, figures = self.record(variables, "failures", 200)
        self.assertEqual(printed["failed"], 20)
        self.assert_complete(figures, printed)
        self.assertEqual(figures["conservation"]["failed"], 20)
        self.assertEqual({kernel["name"]: kernel["failed"] for kernel in figures["kernels"]}, {"works": 0, "fails": 20})
        (wait,) = [row for row in figures["api"] if row["name"] == "xpu::Stream::synchronize"]
        self.assertEqual((wait["calls"], wait["failed"]), (21, 20))

    @on_each({"adaptive": HOST["adaptive"], "sim": DEVICES["sim"]})
    def test_memory_has_its_peak(self, variables):
        _, printed, figures = self.record(variables, "memory", 100)
        self.assert_complete(figures, printed)
        self.assertEqual([entry["peak_bytes"] for entry in figures["memory"]], [3 * 100 * 4096 + 256 * 4])

    def test_the_report_says_what_recording_cost(self):
        _, _, figures = self.record(HOST["adaptive"], "work", self.ROUNDS)
        self.assertGreater(figures["overhead"]["program_ns"], 0)

    def test_a_device_that_was_opened_and_not_used(self):
        finished, _, figures = self.record(HOST["adaptive"], "open_device")
        self.assertIn(b"no command was submitted", finished.stderr)
        self.assertEqual(figures["conservation"]["submitted"], 0)

    def test_a_program_that_opened_no_device_is_told_so(self):
        finished = run(record_command(self.folder / "run.xpu", [WORKLOAD, "count_devices"]), environment(), PATIENCE)
        self.assertEqual(finished.code, 0, finished)
        self.assertIn(b"xpu: nothing was recorded: xpu_test_runtime used libxpu but no device of it", finished.stderr)


class TimeTest(RuntimeTest):
    def test_operations_lie_between_their_calls_and_the_waits_for_them(self):
        for name, variables in HOST.items():
            with self.subTest(name):
                self.record(variables, "work", 100)
                records = dump(self.folder / "run.xpu")
                waits = {}
                for wait in records["wait"]:
                    if wait["api"] == "xpu::Stream::synchronize":
                        waits.setdefault(wait["queue"], []).append(wait["exit"])
                self.assertEqual(len(records["operation"]), 4 * 100 * 6)
                for operation in records["operation"]:
                    # The device's clock is the host's: its ticks are nanoseconds of it.
                    seen = min((end for end in waits[operation["queue"]] if end >= operation["exit"]), default=0)
                    moments = [operation[key] for key in ("enter", "queued", "submit", "start", "end")] + [seen]
                    self.assertEqual(moments, sorted(moments), operation)
                    if name == "inline":
                        self.assertLessEqual(operation["end"], operation["exit"], operation)
                    for stamp in ("queued", "end"):
                        self.assertLessEqual(abs(operation[f"mapped_{stamp}"] - operation[stamp]), operation[f"error_{stamp}"], operation)

    def test_durations_on_sim_are_exact(self):
        program = self.folder / "sim.txt"
        program.write_text("""clock tick=625/12ns bits=36 drift=20ppm
                              kernel "long*" duration=1.25ms
                              kernel "short" duration=62500ns
                              copy rate=1GB/s duration=0ns
                              fill rate=unlimited duration=5us
                              host_function duration=25us
                           """.replace("                              ", ""))
        exact = self.folder / "exact.txt"
        exact.write_text(program.read_text().replace("clock tick=625/12ns bits=36 drift=20ppm\n", ""))
        variables = {"XPU_DRIVER": "sim", "XPU_SIM_PROGRAM": exact}
        _, _, figures = self.record(variables, "kernels", 100, "long one", "short")
        kernels = {kernel["name"]: kernel for kernel in figures["kernels"]}
        for name, duration in (("long one", 1_250_000), ("short", 62_500)):
            row = kernels[name]
            self.assertEqual((row["calls"], row["total_ns"]), (100, 100 * duration))
            self.assertEqual((row["min_ns"], row["median_ns"], row["avg_ns"], row["max_ns"]), (duration,) * 4)
        _, _, figures = self.record(variables, "work", 10)
        (fill,) = figures["fills"]
        self.assertEqual(fill["total_ns"], 40 * 5_000)
        self.assertEqual({copy["route"]: copy["total_ns"] for copy in figures["copies"]}, {"host_to_device": 40 * 512, "device_to_host": 40 * 1024})
        self.assertEqual([kernel["max_ns"] for kernel in figures["kernels"] if "round" in kernel["name"]], [25_000] * 2)

        # A clock with coarse ticks that is fast: right within a tick, and what it is wrong by is a share of the duration.
        _, _, figures = self.record({"XPU_DRIVER": "sim", "XPU_SIM_PROGRAM": program}, "kernels", 100, "long one")
        (row,) = figures["kernels"]
        self.assertAlmostEqual(row["avg_ns"], 1_250_000, delta=1_250_000 * 20e-6 + 53)

    @on_each(DEVICES)
    def test_the_clock_has_an_error_bound(self, variables):
        _, _, figures = self.record(variables, "work", 20)
        (clock,) = figures["clocks"]
        self.assertGreaterEqual(clock["readings"], 2)
        self.assertIsNotNone(clock["error_ns"]["median"])


class FaultTest(RuntimeTest):
    COUNT = 50

    def on_sim(self, text, *kernels):
        program = self.folder / "sim.txt"
        program.write_text(text + "\n")
        _, printed, figures = self.record({"XPU_DRIVER": "sim", "XPU_SIM_PROGRAM": program}, "kernels", self.COUNT, *kernels)
        self.assert_books_balance(figures, submitted=printed["submitted"])
        return figures

    def books(self, figures):
        books = figures["conservation"]
        return {key: books[key] for key in ("recorded", "lost", "pending", "untimed", "failed") if books[key]}

    def test_records_that_never_come_are_lost_and_named(self):
        figures = self.on_sim('fault record_lost kernel "bad" every=5', "good", "bad")
        self.assertEqual(self.books(figures), {"recorded": 90, "lost": 10})
        self.assertEqual([(loss["cause"], loss["count"]) for loss in figures["losses"]], [("driver_lost_times", 10)])
        self.assertEqual(self.kernel_calls(figures, "good", "bad"), 100)

    def test_records_that_come_twice_count_once(self):
        self.assertEqual(self.books(self.on_sim("fault record_duplicate", "twice")), {"recorded": self.COUNT})
        exported = run([XPU, "export", self.folder / "run.xpu", "-o", self.folder / "run.json"], environment(), PATIENCE)
        self.assertEqual(exported.code, 0, exported)
        self.assertIn(f"driver sim delivered {self.COUNT} records of operations of device 0 that it had delivered before",
                      (self.folder / "run.json").read_text())

    def test_records_that_come_late_are_there(self):
        self.assertEqual(self.books(self.on_sim("fault record_late every=3", "late")), {"recorded": self.COUNT})

    def test_impossible_times_are_marked_and_no_duration_is_negative(self):
        figures = self.on_sim("fault record_negative every=2", "backwards")
        self.assertEqual(self.books(figures), {"recorded": self.COUNT})
        clamped = [operation["clamped"] for operation in dump(self.folder / "run.xpu")["operation"]]
        self.assertEqual(clamped, [0, 1] * (self.COUNT // 2))
        (kernel,) = figures["kernels"]
        self.assertEqual((kernel["min_ns"], kernel["max_ns"], kernel["total_ns"]), (0, 10_000, 10_000 * self.COUNT // 2))

    def test_records_without_times_are_untimed(self):
        self.assertEqual(self.books(self.on_sim("fault record_untimed every=2", "untimed")), {"recorded": self.COUNT, "untimed": self.COUNT // 2})

    def test_operations_that_fail_are_failed(self):
        self.assertEqual(self.books(self.on_sim("fault operation_fails every=10", "failing")), {"recorded": self.COUNT, "failed": self.COUNT // 10})

    def test_everything_at_once(self):
        figures = self.on_sim('fault record_lost kernel "a" every=2\nfault record_late kernel "b"\nfault record_duplicate kernel "c"\n'
                              'fault operation_fails kernel "d" nth=7\nclock bits=16', "a", "b", "c", "d")
        self.assertEqual(self.books(figures), {"recorded": 3 * self.COUNT + self.COUNT // 2, "lost": self.COUNT // 2, "failed": 1})


class EndTest(RuntimeTest):
    """Programs that end with work in flight."""
    ROUNDS = 20

    def ends(self, variables, mode, code=0, calls_that_never_return=0):
        plain = run([WORKLOAD, mode, self.ROUNDS], environment(ASAN_OPTIONS="detect_leaks=0", **variables), PATIENCE)
        self.assertEqual((plain.code, plain.timed_out), (code, False), f"without recording: {plain}")
        finished, printed, figures = self.record(variables, mode, self.ROUNDS, code=code)
        self.assert_books_balance(figures, submitted=printed["submitted"] - calls_that_never_return)
        self.assertEqual(figures["conservation"]["lost"], 0, figures["conservation"])
        return finished, figures["conservation"]

    @on_each(DEVICES)
    def test_returning_while_work_runs(self, variables):
        _, books = self.ends(variables, "return")
        self.assertEqual(books["pending"], 0, books)

    def test_returning_while_work_runs_that_does_not_end(self):
        for name in ("adaptive", "pool"):
            with self.subTest(name):
                finished, books = self.ends(HOST[name], "return_endless")
                self.assertEqual(books["pending"], 2, books)
                self.assertEqual({entry["name"] for entry in books["pending_commands"]}, {"occupies"})
                self.assertIn(b"2 commands had not finished when the program ended, the oldest: occupies", finished.stderr)
                self.assertLess(finished.seconds, 20)
        with self.subTest("sim"):
            _, books = self.ends(DEVICES["sim"], "return_endless")
            self.assertEqual((books["pending"], books["failed"]), (0, books["submitted"]), "nothing runs there before somebody waits")

    def test_ends_that_leave_nobody_time(self):
        for mode, code in (("_exit", 7), ("quick_exit", 7), ("abort", -signal.SIGABRT)):
            for name in ("adaptive", "pool", "sim"):
                with self.subTest(f"{mode}, {name}"):
                    _, books = self.ends(DEVICES[name], mode, code)
                    self.assertGreaterEqual(books["pending"], 2, books)
                    self.assertTrue(all(entry["name"] and entry["queue"] for entry in books["pending_commands"]), books)

    def test_exit_from_odd_places(self):
        for mode, code in (("exit_from_thread", 7), ("destructor", 0)):
            for name, variables in HOST.items():
                with self.subTest(f"{mode}, {name}"):
                    self.ends(variables, mode, code)

    def test_a_function_that_ends_the_process_has_no_end_itself(self):
        for name, variables in HOST.items():
            with self.subTest(name):
                # Inline, it runs within the call that submits it.
                _, books = self.ends(variables, "exit_in_function", 7, calls_that_never_return=1 if name == "inline" else 0)
                self.assertEqual([entry["name"] for entry in books["pending_commands"]], [] if name == "inline" else ["exits"])

    @on_each(DEVICES)
    def test_a_child_of_a_process_in_use_is_refused_and_publishes_nothing(self, variables):
        finished, books = self.ends(variables, "fork_after_use")
        self.assertIn(b"child was refused", finished.stdout)
        self.assertEqual((books["recorded"], books["pending"]), (books["submitted"], 0), books)

    @on_each(DEVICES)
    def test_a_child_that_begins_by_itself_is_recorded_by_itself(self, variables):
        _, printed, figures = self.record(variables, "fork_before_use", self.ROUNDS)
        self.assertEqual(len(figures["processes"]), 2)
        self.assert_books_balance(figures, submitted=printed["submitted"])
        self.assertEqual(figures["conservation"]["recorded"], 2 * self.ROUNDS * 6)

    def test_the_program_is_killed(self):
        print(f"\nseed {SEED} (XPU_KILL_SEED repeats it)", flush=True)
        moments = random.Random(SEED)
        for name, variables in DEVICES.items():
            for _ in range(3):
                self.kill_once(name, variables, moments.uniform(0, 0.5))

    def kill_once(self, name, variables, delay):
        recording = self.folder / "run.xpu"
        recorder = start(record_command(recording, [WORKLOAD, "forever"]), environment(**variables))
        where = f"{name}, killed after {delay:.3f} s, seed {SEED}"
        try:
            self.assertTrue(recorder.stdout.readline().startswith(b"submitted"), where)
            (program,) = (int(pid) for pid in run(["ps", "-o", "pid=", "--ppid", recorder.pid], environment()).stdout.split())
            time.sleep(delay)  # the moment is the subject
            os.kill(program, signal.SIGKILL)
            ended = finish(recorder, PATIENCE)
        finally:
            kill_group(recorder)
        self.assertEqual((ended.code, ended.timed_out), (-signal.SIGKILL, False), f"{where}: {ended}")
        figures = report(recording)
        self.assertEqual(figures["conservation"]["unexplained"], 0, f"{where}: {figures['conservation']}")
        last = int(re.findall(rb"submitted (\d+)\n", ended.stdout)[-1] if b"submitted" in ended.stdout else 0)
        self.assertGreaterEqual(figures["conservation"]["submitted"], last, where)
        self.assertGreater(figures["conservation"]["recorded"], 0, where)


class WithOpenClTest(RuntimeTest):
    """One recording of a program that uses both."""

    def both(self, make_environment, variables):
        count = 100
        _, printed, figures = self.record(variables, None, count, program=WITH_OPENCL, make_environment=make_environment)
        self.assertEqual(printed, {"opencl": 3 * count, "runtime": 2 * count})
        self.assert_books_balance(figures, submitted=5 * count)
        self.assertEqual(figures["conservation"]["lost"], 0)
        self.assertEqual(self.kernel_calls(figures, "tiny"), 3 * count)
        self.assertEqual(self.kernel_calls(figures, "calls OpenCL", "calls OpenCL and waits"), 2 * count)
        self.assertEqual(len(figures["devices"]), 2)
        self.assertEqual({kernel["device"] for kernel in figures["kernels"] if kernel["name"] == "tiny"} &
                         {kernel["device"] for kernel in figures["kernels"] if kernel["name"] != "tiny"}, set(), "each has its own device")

    @needs(WITH_OPENCL)
    @on_each(DEVICES)
    def test_on_the_null_driver(self, variables):
        self.both(null_driver, variables)

    @needs(WITH_OPENCL, POCL_ICD)
    def test_on_pocl(self):
        self.both(pocl, HOST["adaptive"])



class ProfiledOpenClTest(EndToEndTest):
    """A program that uses OpenCL and profiles itself, without waiting for the device and without a recorder."""

    def profiled(self, env, when, count=100):
        finished = run([PROFILED_OPENCL, when, count], env, PATIENCE)
        self.assertEqual((finished.code, finished.timed_out, finished.stderr), (0, False, b""), finished)
        return finished.stdout.decode().splitlines()

    @needs(PROFILED_OPENCL)
    def test_every_kernel_is_seen_when_the_session_came_first(self):
        for name, make_environment in (("null driver", null_driver), ("pocl", pocl)):
            if name == "pocl" and not POCL_ICD.exists():
                continue
            with self.subTest(name):
                self.assertEqual(self.profiled(make_environment(OPENCL_LAYERS=LAYER), "early"), ["kernels 100 of 100, unexplained 0, pending 0"])

    @needs(PROFILED_OPENCL)
    def test_views_and_callbacks_tell_of_every_kernel(self):
        expected = ["kernels 100", "bad 0", "appended 200", "completed 100", "created 1", "calls more"]
        for name, make_environment in (("null driver", null_driver), ("pocl", pocl)):
            if name == "pocl" and not POCL_ICD.exists():
                continue
            with self.subTest(name):
                self.assertEqual(self.profiled(make_environment(OPENCL_LAYERS=LAYER), "views"), expected)

    @needs(PROFILED_OPENCL)
    def test_a_session_that_came_too_late_says_why_it_sees_nothing(self):
        seen, reason = self.profiled(null_driver(OPENCL_LAYERS=LAYER), "late")
        self.assertEqual(seen, "kernels 0 of 100, unexplained 0, pending 0")
        self.assertIn("prepared before the program's first call", reason)

    @needs(PROFILED_OPENCL)
    def test_without_the_layer_it_says_so(self):
        self.assertIn("OPENCL_LAYERS does not name", self.profiled(null_driver(), "early")[1])


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
