"""Eight threads under the whole of it: layer, trace, recorder, reader. In every build, the sanitizers' above all, whose complaints fail it."""
import sys
import unittest

from harness import BIN, COUNTING_LAYER, XPU, EndToEndTest, environment, null_driver, outside_counts, record_command, report, run

WORKLOAD = BIN / "xpu_test_workload"
THREADS = 8
LAUNCHES = 4000
SANITIZERS = (b"Sanitizer", b"runtime error")


class ThreadsTest(EndToEndTest):
    def record(self, mode, *options):
        recording, counts = self.folder / "run.xpu", self.folder / "counts"
        # The programs leave objects to the end of the process on purpose.
        env = null_driver(XPU_NULL_DURATION_NS=2_000, OPENCL_LAYERS=COUNTING_LAYER, XPU_TEST_COUNTS=counts, ASAN_OPTIONS="detect_leaks=0")
        finished = run(record_command(recording, [WORKLOAD, mode, LAUNCHES, 100, THREADS], *options), env, timeout=120)
        for word in SANITIZERS:
            self.assertNotIn(word, finished.stdout + finished.stderr, finished)
        self.assertEqual(finished.code, 0, finished)
        figures = report(recording)
        self.assert_books_balance(figures, submitted=outside_counts(counts)["submitted"])
        books = figures["conservation"]
        self.assertEqual((books["lost"], books["pending"], books["untimed"]), (0, 0, 0), books)
        checked = run([XPU, "check", recording], environment(), 120)
        self.assertEqual(checked.code, 0, checked)
        return books

    def test_a_queue_for_each_thread(self):
        books = self.record("mt")
        self.assertEqual(len([queue for queue in books["queues"] if queue["submitted"] >= LAUNCHES // THREADS]), THREADS, books["queues"])

    def test_one_queue_for_all_threads(self):
        self.record("mtshared")

    def test_every_call(self):
        self.record("mtshared", "--api")

    def test_devices_only(self):
        self.record("mt", "--device-only")

    def test_callbacks_of_the_drivers_threads(self):
        self.record("callback")


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
