"""Every way in which a program can end, with and without recording: the same end, the same output, and books that balance."""
import re
import sys
import unittest

from harness import BIN, POCL_ICD, XPU, EndToEndTest, environment, needs, null_driver, pocl, record_command, report, run

EXIT = BIN / "xpu_test_exit"
UNLOAD = BIN / "xpu_test_unload"
# The child of a process that used PoCL cannot use it: these say "null driver" in their own list. After PoCL's handler for a segmentation fault, and with its
# worker threads alive in other ends, PoCL itself is not the same from run to run.
NULL_DRIVER_ONLY = {"fork_child_uses", "parent_ends_first", "pthread_exit_main"}
UNSTEADY_ON_POCL = {"exit_from_thread": "PoCL aborts by itself now and then when its workers outlive the exit handlers"}
LIMIT_SECONDS = 60


def comparable(output):
    """Without process ids, and in an order that does not depend on which of several processes was faster."""
    return sorted(re.sub(rb"\b(\w+) \d+ submitted", rb"\1 # submitted", output).splitlines())


def modes_of(program):
    listed = run([program, "--list"], null_driver(), timeout=10)
    return [line.split()[0] for line in listed.stdout.decode().splitlines() if line.strip()]


class ExitModesTest(EndToEndTest):
    def compare(self, command, make_environment, steady=True):
        plain = run(command, make_environment(), LIMIT_SECONDS, cwd=self.folder)
        self.assertFalse(plain.timed_out, f"the program hangs without us: {plain}")
        recording = self.folder / "run.xpu"
        traced = run(record_command(recording, command), make_environment(), LIMIT_SECONDS, cwd=self.folder)
        self.assertFalse(traced.timed_out, traced)
        if steady:
            self.assertEqual(traced.code, plain.code, traced)
            self.assertEqual(comparable(traced.stdout), comparable(plain.stdout), traced)
        figures = report(recording)
        if len(figures["processes"]) == 1:
            self.assertNotIn(b"still ran", traced.stderr, traced)
        self.assert_books_balance(figures)
        self.assertGreater(figures["conservation"]["submitted"], 0, figures["conservation"])
        checked = run([XPU, "check", recording], environment(), LIMIT_SECONDS)
        self.assertEqual(checked.code, 0, checked)
        return figures

    @classmethod
    def setUpClass(cls):
        # PoCL compiles a kernel when it first runs, and aborts when the process ends while one of its threads does: it is compiled before.
        if POCL_ICD.exists():
            for program in ([EXIT, "fork_child_exits_now"], [UNLOAD, "dlclose_finished"]):  # these wait for their work
                run(program, pocl(), LIMIT_SECONDS)

    def test_on_the_null_driver(self):
        modes = modes_of(EXIT)
        self.assertGreater(len(modes), 15)
        for mode in modes:
            with self.subTest(mode):
                self.compare([EXIT, mode], lambda: null_driver(XPU_NULL_DURATION_NS=20_000))

    def test_a_driver_that_is_dead_in_children_is_not_asked_there(self):
        for mode in ("fork_child_exits", "fork_child_exits_now"):
            with self.subTest(mode):
                self.compare([EXIT, mode], lambda: null_driver(XPU_NULL_DURATION_NS=20_000, XPU_NULL_FAULTS="dead_in_children"))

    @needs(POCL_ICD)
    def test_on_pocl(self):
        for mode in modes_of(EXIT):
            if mode in NULL_DRIVER_ONLY:
                continue
            with self.subTest(mode):
                self.compare([EXIT, mode], pocl, steady=mode not in UNSTEADY_ON_POCL)

    def test_unloading_the_loader(self):
        for mode in ("dlclose", "dlclose_finished", "reload", "never"):
            with self.subTest(f"{mode}, null driver"):
                self.compare([UNLOAD, mode], lambda: null_driver(XPU_NULL_DURATION_NS=20_000))
            if POCL_ICD.exists():
                with self.subTest(f"{mode}, pocl"):
                    self.compare([UNLOAD, mode], pocl)

    def test_a_child_that_goes_on_with_its_parents_queue_has_books_of_its_own(self):
        figures = self.compare([EXIT, "fork_child_uses"], lambda: null_driver(XPU_NULL_DURATION_NS=20_000))
        self.assertEqual(len(figures["processes"]), 2, figures["processes"])


class TransparencyTest(EndToEndTest):
    """What a program can see of its own objects is the same with and without recording."""

    def compare(self, make_environment, *areas):
        command = [BIN / "xpu_test_transparency", *areas]
        plain = run(command, make_environment(), LIMIT_SECONDS)
        self.assertEqual(plain.code, 0, plain)
        traced = run(record_command(self.folder / "run.xpu", command), make_environment(), LIMIT_SECONDS)
        self.assertEqual(traced.stdout.decode().splitlines(), plain.stdout.decode().splitlines())
        self.assertEqual(traced.code, 0, traced)
        self.assertGreater(len(plain.stdout.splitlines()), 10, plain)
        self.assert_books_balance(report(self.folder / "run.xpu"))

    def test_on_the_null_driver(self):
        self.compare(null_driver)

    @needs(POCL_ICD)
    def test_on_pocl(self):
        # PoCL 3.1 dies of a null handle, and its reference counts hold its own references.
        self.compare(pocl, "queues", "objects", "events", "errors")


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
