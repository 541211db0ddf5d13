"""The stated error of every mapped time, proved on the null driver, whose clock is a known function of the host's."""
import sys
import unittest
from fractions import Fraction

from harness import BIN, EndToEndTest, dump, null_driver, record_command, report, run


class ClockBoundTest(EndToEndTest):
    def record(self, *workload, **variables):
        recording = self.folder / "run.xpu"
        finished = run(record_command(recording, [BIN / "xpu_test_workload", *workload]), null_driver(**variables), timeout=120)
        self.assertEqual(finished.code, 0, finished)
        return recording

    def assert_bound_holds(self, recording, skew_ns=0, drift_ppm=0, tick_ns=1, minimum=1000, check_size=True):
        records = dump(recording)
        rate = 1 + Fraction(drift_ppm) / 1_000_000
        errors = []
        for operation in records["operation"]:
            for stamp in ("queued", "end"):
                # The event happened somewhere in the tick that the stamp names.
                earliest = (operation[stamp] - skew_ns) / rate
                latest = (operation[stamp] + tick_ns - skew_ns) / rate
                mapped, error = operation[f"mapped_{stamp}"], operation[f"error_{stamp}"]
                self.assertLessEqual(mapped - error - 1, earliest, (stamp, operation))
                self.assertGreaterEqual(mapped + error + 1, latest - 1, (stamp, operation))
                errors.append(error)
        self.assertGreaterEqual(len(errors), 2 * minimum)
        if not check_size:
            return
        errors.sort()
        shape = records["map"][0]
        limit = shape["narrowest"] + tick_ns + shape["gap"] * 100e-6 + 2
        p99 = errors[int(0.99 * (len(errors) - 1))]
        self.assertLessEqual(p99, limit, f"narrowest bracket {shape['narrowest']} ns, largest gap {shape['gap']} ns")

    def test_skew_drift_and_tick(self):
        for skew, drift, tick in ((0, 0, 1), (123_456_789_012, 0, 1), (-5_000_000, 80, 1), (7, -95, 100), (1 << 40, 50, 1000), (0, 400, 52)):
            with self.subTest(skew_ns=skew, drift_ppm=drift, tick_ns=tick):
                recording = self.record("launch", 20_000, 100, XPU_NULL_SKEW_NS=skew, XPU_NULL_DRIFT_PPM=drift, XPU_NULL_TICK_NS=tick,
                                        XPU_NULL_DURATION_NS=20_000)
                self.assert_bound_holds(recording, skew, drift, tick)

    def test_wide_brackets(self):
        recording = self.record("launch", 5_000, 100, XPU_NULL_SKEW_NS=1_000_000, XPU_NULL_TIMER_BRACKET_NS=30_000, XPU_NULL_DURATION_NS=20_000)
        self.assert_bound_holds(recording, 1_000_000)

    def test_without_a_device_timer_a_host_clock_is_recognised(self):
        recording = self.record("launch", 20_000, 100, XPU_NULL_FAULTS="no_timer", XPU_NULL_DURATION_NS=20_000)
        self.assertTrue(all(reading["method"] == 2 for reading in dump(recording)["reading"]))
        self.assert_bound_holds(recording)

    def test_without_any_timer_commands_themselves_bracket_the_clock(self):
        recording = self.record("launch", 20_000, 100, XPU_NULL_FAULTS="no_timer", XPU_NULL_SKEW_NS=77_000_000_000, XPU_NULL_DURATION_NS=20_000)
        self.assertTrue(all(reading["method"] == 3 for reading in dump(recording)["reading"]))
        self.assert_bound_holds(recording, 77_000_000_000, check_size=False)

    def test_a_driver_without_times_is_counted_as_untimed(self):
        books = report(self.record("launch", 2_000, 100, XPU_NULL_FAULTS="no_profiling"))["conservation"]
        self.assertGreaterEqual(books["untimed"], 2_000)
        self.assertEqual((books["unexplained"], books["lost"], books["pending"]), (0, 0, 0), books)

    def test_impossible_times_are_marked(self):
        recording = self.record("launch", 2_000, 100, XPU_NULL_FAULTS="backward")
        operations = dump(recording)["operation"]
        self.assertTrue(all(operation["clamped"] for operation in operations if operation.get("done")))
        self.assertEqual(report(recording)["conservation"]["unexplained"], 0)

    def test_failed_commands_and_refused_calls_are_counted(self):
        finished = run(record_command(self.folder / "run.xpu", [BIN / "xpu_test_workload", "noarg", 1_000, 100]),
                       null_driver(XPU_NULL_FAULTS="fail_command=10", XPU_NULL_DURATION_NS=1000), timeout=60)
        figures = report(self.folder / "run.xpu")
        self.assertEqual(figures["conservation"]["unexplained"], 0, (figures["conservation"], finished))
        self.assertGreaterEqual(sum(kernel["failed"] for kernel in figures["kernels"]), 100)

    def test_late_times_are_waited_for_or_counted(self):
        books = report(self.record("launch", 2_000, 100, XPU_NULL_FAULTS="late=1", XPU_NULL_DURATION_NS=1000))["conservation"]
        self.assertEqual((books["unexplained"], books["lost"]), (0, 0), books)

    def test_a_step_of_the_device_clock_does_not_break_the_rest(self):
        recording = self.record("launch", 20_000, 100, XPU_NULL_FAULTS="step=5000000@10000", XPU_NULL_DURATION_NS=50_000)
        self.assertEqual(report(recording)["conservation"]["unexplained"], 0)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
