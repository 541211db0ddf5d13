"""Profiles of this process and recordings of others: figures, files, states, errors."""

import gzip
import json
import sys
import threading
import warnings

import support
import xpu
from support import PackageTest, run
from xpu import profiler

WORK = """
import xpu
stream, one, other = xpu.Stream(), xpu.Buffer(4096), xpu.Buffer(4096)
def work(fills, copies):
    for _ in range(fills): stream.fill(one, 1)
    for _ in range(copies): stream.copy(other, one)
    stream.synchronize()
"""


def work(fills, copies, stream=None):
    stream = stream or xpu.Stream()
    one, other = xpu.Buffer(4096), xpu.Buffer(4096)
    for _ in range(fills):
        stream.fill(one, 1)
    for _ in range(copies):
        stream.copy(other, one)
    stream.synchronize()


def calls(rows):
    return sum(row["calls"] for row in rows)


class ProfileTest(PackageTest):
    def test_figures(self):
        work(3, 3)
        with profiler.profile() as profile:
            work(5, 7)
        work(2, 2)
        report = profile.report()
        self.assertEqual(profile.state, "collected")
        self.assertEqual(report["schema"], "xpu.report/1")
        self.assertEqual((calls(report["fills"]), calls(report["copies"])), (5, 7))
        self.assert_books_balance(report, submitted=12)
        self.assertIn("12 submitted = 12 recorded", profile.table())

    def test_times_are_those_of_the_device(self):
        """On `sim` they are programmed, and come out to the last digit."""
        program = self.folder / "program.txt"
        program.write_text("fill duration=1234us rate=unlimited\n")
        code = WORK + """
with xpu.profiler.profile() as profile:
    work(3, 0)
print([(row["calls"], row["total_ns"]) for row in profile.report()["fills"]])
"""
        self.assert_prints(code, "[(3, 3702000)]", XPU_DRIVER="sim", XPU_SIM_PROGRAM=program)

    def test_timelines(self):
        with profiler.profile() as profile, profiler.range("the step"):
            work(2, 3)
        for name, reader in (("a.json", open), ("a.json.gz", gzip.open)):
            written = profile.export_chrome(self.folder / name, metadata={"purpose": "a test"})
            self.assertEqual(written.path, str(self.folder / name))
            with reader(written.path, "rt") as file:
                trace = json.load(file)
            names = [event.get("cat") for event in trace["traceEvents"]]
            self.assertEqual((names.count("gpu_memset"), names.count("gpu_memcpy")), (2, 3))
            self.assertIn("the step", [event.get("name") for event in trace["traceEvents"]])
            self.assertEqual(trace["purpose"], "a test")
            checked = run([xpu.program_path(), "check", written.path])
            self.assertEqual(checked.code, 0, checked)
        written = profile.export_perfetto(self.folder / "a.pftrace")
        self.assertEqual(written.bytes, (self.folder / "a.pftrace").stat().st_size)
        self.assertGreater(written.slices, 5)

    def test_a_file_that_cannot_be_written(self):
        with profiler.profile() as profile:
            work(1, 0)
        with self.assertRaisesRegex(xpu.UnavailableError, "/no/such/folder/a.json"):
            profile.export_chrome("/no/such/folder/a.json")
        with self.assertRaisesRegex(xpu.InvalidArgumentError, "'hta'"):
            profile.export_chrome(self.folder / "a.json", compatibility="another")
        self.assertEqual(calls(profile.report()["fills"]), 1)

    def test_ranges(self):
        @profiler.range("decorated")
        def decorated():
            work(1, 0)

        with profiler.profile() as profile:
            with profiler.range("outer"):
                work(2, 0)
                with profiler.range("inner"):
                    work(3, 0)
                decorated()
                decorated()
            with self.assertRaises(ZeroDivisionError), profiler.range("failing"):
                1 / 0
            profiler.mark("a moment")
            profiler.counter("loss", 0.5)
            work(4, 0)
        ranges = {row["name"]: row for row in profile.report(sort="name")["ranges"] if row["calls"]}
        self.assertEqual({name: row["calls"] for name, row in ranges.items()}, {"outer": 1, "inner": 1, "decorated": 2, "failing": 1})
        self.assertEqual(ranges["inner"]["commands"], 3)
        self.assertEqual(ranges["outer"]["commands"], 7)
        self.assertEqual(list(row["name"] for row in profile.report(ranges="^in")["ranges"]), ["inner"])

    def test_pauses(self):
        with profiler.profile() as profile:
            work(1, 0)
            profile.pause()
            work(10, 0)
            profile.resume()
            work(2, 0)
        self.assertEqual(calls(profile.report()["fills"]), 3)

    def test_a_warm_up_is_in_no_figure(self):
        profile = profiler.profile(warm_up=True)
        self.assertEqual(profile.state, "warming up")
        work(10, 0)
        with profile:
            work(2, 0)
        self.assertEqual(calls(profile.report()["fills"]), 2)

    def test_kinds_and_filters(self):
        with profiler.profile(activities=["gpu_memcpy"], buffer_mib=16) as profile:
            work(2, 3)
        written = profile.export_chrome(self.folder / "a.json")
        trace = json.loads((self.folder / "a.json").read_text())
        kinds = {event.get("cat") for event in trace["traceEvents"]}
        self.assertIn("gpu_memcpy", kinds)
        self.assertNotIn("gpu_memset", kinds)
        self.assertEqual(written.kernels, 0)

    def test_states(self):
        profile = profiler.profile()
        self.assertEqual(profile.state, "created")
        with self.assertRaises(xpu.FailedPreconditionError):
            profile.stop()
        profile.start()
        with self.assertRaises(xpu.FailedPreconditionError):
            profile.start()
        profile.stop()
        with self.assertRaises(xpu.FailedPreconditionError):
            profile.start()
        profile.cancel()
        self.assertEqual(profile.state, "cancelled")
        with self.assertRaises(xpu.FailedPreconditionError):
            profile.report()

    def test_an_exception_inside_is_not_hidden_and_ends_the_profile(self):
        profile = profiler.profile()
        with self.assertRaises(ZeroDivisionError), profile:
            work(1, 0)
            1 / 0
        self.assertEqual(calls(profile.report()["fills"]), 1)

    def test_one_that_was_stopped_inside(self):
        with profiler.profile() as profile:
            work(1, 0)
            profile.stop()
            work(5, 0)
        self.assertEqual(calls(profile.report()["fills"]), 1)

    def test_two_at_a_time(self):
        with profiler.profile() as outer:
            work(1, 0)
            with profiler.profile() as inner:
                work(2, 0)
        self.assertEqual((calls(outer.report()["fills"]), calls(inner.report()["fills"])), (3, 2))

    def test_threads_may_use_one_profile(self):
        with profiler.profile() as profile:
            threads = [threading.Thread(target=work, args=(20, 0)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        reports = []
        threads = [threading.Thread(target=lambda: reports.append(profile.report())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([calls(report["fills"]) for report in reports], [80] * 4)

    def test_bad_configurations(self):
        for arguments in ({"activities": ["no_such_kind"]}, {"kernels": "("}, {"buffer_mib": -1}, {"config": {"ACTIVITIES_DURATION_MSECS": "soon"}}):
            with self.assertRaises(xpu.InvalidArgumentError, msg=arguments):
                profiler.profile(**arguments).start()
        for value in ("a\nACTIVITIES_ENABLED=n", "a # b"):
            with self.assertRaisesRegex(xpu.InvalidArgumentError, "has a line break or a '#'"):
                profiler.profile(config={"REQUEST_TRACE_ID": value})
        with self.assertWarnsRegex(UserWarning, "NO_SUCH_KEY"):
            profiler.profile(config={"NO_SUCH_KEY": 1})
        with self.assertRaisesRegex(xpu.InvalidArgumentError, "sort|fastest"), profiler.profile() as profile:
            profile.stop()
            profile.report(sort="fastest")
        with self.assertRaisesRegex(xpu.InvalidArgumentError, "'colour'"):
            profile.report(by="colour")

    def test_good_ones_warn_of_nothing(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            profiler.profile(["kernel", "user_annotation"], kernels="a#b", buffer_mib=8, config={"PROFILE_WITH_STACK": True})

    def test_one_that_is_left_alone_ends_with_the_process(self):
        self.assert_prints(WORK + "profile = xpu.profiler.profile(); profile.start(); work(3, 3); print('end')", "end")

    def test_capabilities(self):
        found = {capability.what: capability for capability in profiler.capabilities()}
        self.assertTrue(found["kernel"].is_available)
        self.assertFalse(found["cuda_driver"].is_available)
        self.assertTrue(found["cuda_driver"].reason)


class ExampleTest(PackageTest):
    def test_it_does_what_the_documentation_shows(self):
        program = self.folder / "program.txt"
        program.write_text("fill duration=1234us rate=unlimited\n")
        example = support.ROOT / "examples" / "from_python.py"
        finished = run([sys.executable, example, self.folder / "a.json.gz"], XPU_DRIVER="sim", XPU_SIM_PROGRAM=program)
        self.assertEqual(finished.code, 0, finished)
        self.assertIn("\n1 fill, 1234000 ns on the device\n", finished.stdout)
        self.assertTrue((self.folder / "a.json.gz").is_file())
        self.assertIn(example.read_text(), (support.ROOT / "docs" / "python.md").read_text())


class RecordingTest(PackageTest):
    def record(self, code, *options):
        path = self.folder / "program.xpu"
        finished = run([xpu.program_path(), "record", "-f", "-o", path, *options, "--", sys.executable, "-c", code])
        self.assertEqual(finished.code, 0, finished)
        return path

    def test_a_program_that_was_recorded(self):
        path = self.record(WORK + "with xpu.profiler.range('all'): work(5, 7)")
        checked = run([xpu.program_path(), "check", path])
        self.assertEqual(checked.code, 0, checked)
        recording = profiler.open(path)
        self.assertEqual((recording.path, recording.is_finished, recording.damage), (str(path), True, ""))
        report = recording.report()
        self.assertEqual((calls(report["fills"]), calls(report["copies"])), (5, 7))
        self.assert_books_balance(report, submitted=12)
        self.assertEqual([(row["name"], row["commands"]) for row in report["ranges"]], [("all", 12)])
        shown = run([xpu.program_path(), "report", "--json", path])
        self.assertEqual(json.loads(shown.stdout), report)
        self.assertIn("12 submitted: 7 copies, 5 fills", recording.table())
        self.assertGreater(recording.export_chrome(self.folder / "a.json").slices, 12)
        self.assertGreater(recording.export_perfetto(self.folder / "a.pftrace").slices, 12)

    def test_what_is_none(self):
        with self.assertRaises(xpu.NotFoundError):
            profiler.open(self.folder / "nothing.xpu")
        (self.folder / "text.xpu").write_text("no recording" * 100)
        with self.assertRaises(xpu.InvalidArgumentError):
            profiler.open(self.folder / "text.xpu")

    def test_a_profile_within_a_recording(self):
        path = self.record(WORK + "with xpu.profiler.profile() as profile: work(2, 0)\nwork(3, 0)\nassert profile.report()['conservation']['submitted'] == 2")
        self.assertEqual(calls(profiler.open(path).report()["fills"]), 5)


if __name__ == "__main__":
    support.main()
