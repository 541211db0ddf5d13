"""The programs of examples/, which README.md shows: they are what it shows, and do what it says, on each driver, recorded and not."""
import collections
import json
import re
import time
import unittest
from pathlib import Path

from harness import BIN, SCRATCH, EndToEndTest, environment, record_command, report, run

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
FIRST_PROGRAM = BIN / "first_program"
PATIENCE = 60
ITEMS = 1 << 20
PROGRAMMED_NS = 1_234_000


def on_host():
    return environment(XPU_CACHE_DIR=SCRATCH / "kernels")


def on_sim():
    return environment(XPU_CACHE_DIR=SCRATCH / "kernels", XPU_DRIVER="sim", XPU_SIM_PROGRAM=EXAMPLES / "sim_program.txt")


class FirstProgramTest(EndToEndTest):
    def printed_ms(self, finished):
        self.assertEqual((finished.code, finished.timed_out), (0, False), finished)
        match = re.fullmatch(rf"\S.*: saxpy took (\d+\.\d{{3}}) ms, {ITEMS} of {ITEMS} right\n", finished.stdout.decode())
        self.assertIsNotNone(match, finished)
        return match[1]

    def recorded(self, env):
        finished = run(record_command(self.folder / "a", [FIRST_PROGRAM]), env, PATIENCE)
        figures = report(self.folder / "a.xpu")
        self.assert_books_balance(figures, submitted=4)
        self.assertEqual(figures["conservation"]["lost"], 0)
        (kernel,) = figures["kernels"]
        self.assertEqual((kernel["name"], kernel["calls"], kernel["geometries"][0]["global"][0]), ("saxpy", 1, ITEMS))
        self.assertEqual((len(figures["copies"]), len(figures["fills"])), (2, 1))
        return self.printed_ms(finished), kernel["total_ns"]

    def test_the_readme_shows_the_program_as_it_is(self):
        shown = re.findall(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
        self.assertEqual(shown, [(EXAMPLES / "first_program.cpp").read_text()])

    def test_it_computes_the_right_thing_on_the_host(self):
        self.assertGreater(float(self.printed_ms(run([FIRST_PROGRAM], on_host(), PATIENCE))), 0)

    def test_it_takes_the_programmed_time_on_sim(self):
        self.assertEqual(self.printed_ms(run([FIRST_PROGRAM], on_sim(), PATIENCE)), f"{PROGRAMMED_NS / 1e6:.3f}")

    def test_events_and_the_recording_agree_to_the_tick_on_sim(self):
        printed_ms, recorded_ns = self.recorded(on_sim())
        self.assertEqual((printed_ms, recorded_ns), (f"{PROGRAMMED_NS / 1e6:.3f}", PROGRAMMED_NS))

    def test_events_and_the_recording_agree_on_the_host(self):
        printed_ms, recorded_ns = self.recorded(on_host())
        # The first event lies behind the fill, and a thread may be kept waiting between that and the kernel: the program's time is the longer one.
        self.assertGreaterEqual(float(printed_ms) * 1e6 + 1_000, recorded_ns)
        self.assertGreater(recorded_ns, 0)

    def test_what_goes_wrong_is_one_sentence(self):
        finished = run([FIRST_PROGRAM], environment(XPU_DRIVER="moon"), PATIENCE)
        self.assertEqual((finished.code, finished.stdout), (1, b""), finished)
        self.assertRegex(finished.stderr, rb"\A[^\n]*moon[^\n]*\n\Z")



class ProfileItselfTest(EndToEndTest):
    def profiled(self, env, name="trace.json"):
        finished = run([BIN / "profile_itself", self.folder / name], env, PATIENCE)
        self.assertEqual((finished.code, finished.timed_out), (0, False), finished)
        return finished.stdout.decode()

    def test_the_documentation_shows_the_program_as_it_is(self):
        shown = re.findall(r"```cpp\n(.*?)```", (ROOT / "docs/profiler.md").read_text(), re.DOTALL)
        self.assertEqual(shown[0], (EXAMPLES / "profile_itself.cpp").read_text())

    def test_each_operator_has_exactly_the_programmed_time_on_sim(self):
        output = self.profiled(on_sim())
        lines = "operator 1: 12.340 ms on the device\noperator 3: 24.680 ms on the device\n"
        self.assertIn(lines, output)
        self.assertIn(lines, (ROOT / "docs/profiler.md").read_text())
        self.assertIn("30 submitted = 30 recorded + 0 lost + 0 pending; 0 unexplained", output)
        self.assertNotIn("operator 2", output)

    def test_operators_and_their_device_time_are_in_the_timeline_on_sim(self):
        # The virtual clock stands still while the host works. Ten seconds ahead of it, devices do nothing before they are told to.
        program = self.folder / "program.txt"
        program.write_text((EXAMPLES / "sim_program.txt").read_text() + f"origin {time.clock_gettime_ns(time.CLOCK_MONOTONIC) + 10**10}ns\n")
        self.profiled(dict(on_sim(), XPU_SIM_PROGRAM=str(program)))
        trace = json.loads((self.folder / "trace.json").read_text())

        def of_category(category):
            return [event for event in trace["traceEvents"] if event.get("cat") == category]

        operators, kernels, (span,) = of_category("cpu_op"), of_category("kernel"), of_category("gpu_user_annotation")
        # Operator 2 ran while the profile paused: what it submitted is no part of it.
        self.assertEqual([(event["name"], event["args"]["External id"]) for event in operators],
                         [("operator 1", 1), ("operator 2", 2), ("operator 3", 3)])
        self.assertEqual([kernel["args"]["External id"] for kernel in kernels], [1] * 10 + [3] * 20)
        self.assertEqual((span["name"], span["args"]["commands"]), ("step", 30))
        ends = [kernel["ts"] + kernel["dur"] for kernel in kernels]
        self.assertEqual(span["ts"], min(kernel["ts"] for kernel in kernels))
        self.assertAlmostEqual(span["ts"] + span["dur"], max(ends), 3)
        self.assertEqual({kernel["dur"] for kernel in kernels}, {1234.0})
        self.assertEqual(span["dur"], 130 * 1234.0, "one behind the other, with the 100 of the pause between")
        checked = run([BIN / "xpu", "check", self.folder / "trace.json"], on_sim(), PATIENCE)
        self.assertEqual(checked.code, 0, checked)

    def test_it_profiles_real_kernels_and_writes_a_sound_timeline(self):
        output = self.profiled(on_host())
        self.assertIn("30 submitted = 30 recorded + 0 lost + 0 pending; 0 unexplained", output)
        trace = json.loads((self.folder / "trace.json").read_text())
        kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
        self.assertEqual([kernel["args"]["External id"] for kernel in kernels], [1] * 10 + [3] * 20)
        marks = [event["name"] for event in trace["traceEvents"] if event.get("ph") == "i" and event.get("cat") == "user_annotation"]
        self.assertEqual(marks, ["xpu: collection paused", "xpu: collection resumed"])
        checked = run([BIN / "xpu", "check", self.folder / "trace.json"], on_host(), PATIENCE)
        self.assertEqual(checked.code, 0, checked)

    def test_beside_a_recording_both_see_the_same_kernels(self):
        recording = self.folder / "a.xpu"
        finished = run(record_command(recording, [BIN / "profile_itself", self.folder / "trace.json"]), on_host(), PATIENCE)
        self.assertEqual(finished.code, 0, finished)
        self.assertIn("30 submitted = 30 recorded + 0 lost + 0 pending; 0 unexplained", finished.stdout.decode())
        exported = run([BIN / "xpu", "export", "--format", "chrome", recording, "-o", self.folder / "recorded.json"], on_host(), PATIENCE)
        self.assertEqual(exported.code, 0, exported)

        def kernels(name):
            events = json.loads((self.folder / name).read_text())["traceEvents"]
            return collections.Counter((event["name"], event["dur"], event["args"].get("External id")) for event in events if event.get("cat") == "kernel")

        profiled, recorded = kernels("trace.json"), kernels("recorded.json")
        self.assertEqual(sum(profiled.values()), 30)
        self.assertEqual(profiled - recorded, collections.Counter())
        self.assertGreater(sum(recorded.values()), 30, "the recording has the warm-up and what was paused as well")


if __name__ == "__main__":
    unittest.main(verbosity=2)
