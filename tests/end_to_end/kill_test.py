"""SIGKILL at random times: of the program, of the recorder, of both. What is left must be readable and the books must balance.

CI runs a few of each; `make soak` many (XPU_KILL_ROUNDS="200 50 50"), with a log. The seed is printed; XPU_KILL_SEED repeats a run.
"""
import os
import random
import signal
import subprocess
import sys
import time
import unittest

from harness import BIN, POCL_ICD, XPU, EndToEndTest, environment, finish, kill_group, null_driver, pocl, record_command, report, run, start

SEED = int(os.environ.get("XPU_KILL_SEED", random.randrange(1 << 32)))
PROGRAM_ROUNDS, RECORDER_ROUNDS, BOTH_ROUNDS = (int(n) for n in os.environ.get("XPU_KILL_ROUNDS", "20 10 10").split())


def children_of(pid):
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    return [int(word) for word in listed.stdout.split()]


class KillTest(EndToEndTest):
    @classmethod
    def setUpClass(cls):
        print(f"\nseed {SEED} (XPU_KILL_SEED repeats it)", flush=True)
        cls.random = random.Random(SEED)

    def round(self, index, victims):
        on_pocl = index % 2 == 1 and POCL_ICD.exists()
        recording = self.folder / f"{index}.xpu"
        recorder = start(record_command(recording, [BIN / "xpu_test_kill"]), pocl() if on_pocl else null_driver(XPU_NULL_DURATION_NS=2000))
        delay = self.random.uniform(0, 0.7)
        program = None
        try:
            deadline = time.monotonic() + 20
            while not (listed := children_of(recorder.pid)):
                self.assertLess(time.monotonic(), deadline, "the program never started")
                time.sleep(0.002)
            program = listed[0]
            first_line = recorder.stdout.readline()  # From here on it submits; compiling the kernel may have taken a while.
            self.assertTrue(first_line.startswith(b"submitted"), first_line)
            time.sleep(delay)
            for victim in victims:
                os.kill(program if victim == "program" else recorder.pid, signal.SIGKILL)
            if "recorder" in victims and "program" not in victims:
                # The program goes on as if nothing had happened, even when no chunk is left.
                time.sleep(0.3)
                os.kill(program, 0)
                os.kill(program, signal.SIGKILL)
            ended = finish(recorder, 30)
            self.assertFalse(ended.timed_out, "the recorder did not end")
        finally:
            kill_group(recorder)
        if "recorder" not in victims:
            self.assertEqual(ended.code, -signal.SIGKILL, ended)
            self.assertTrue(recording.is_file(), "the recorder lived and did not finish the recording")
        figures = report(recording)
        books = figures["conservation"]
        where = f"round {index}, {'pocl' if on_pocl else 'null driver'}, killed {'+'.join(victims)} after {delay:.3f} s, seed {SEED}"
        self.assertEqual(books["unexplained"], 0, f"{where}: {books}")
        checked = run([XPU, "check", recording], environment(), 60)
        self.assertEqual(checked.code, 0, f"{where}: {checked}")
        if books["pending"]:
            named = books["pending_commands"]
            self.assertTrue(all(entry["name"] and entry["queue"] for entry in named), f"{where}: {named}")
            self.assertTrue(named or books["pending"] <= 2, f"{where}: pending commands are not named")
        print(f"{where}: submitted {books['submitted']}, recorded {books['recorded']}, lost {books['lost']}, pending {books['pending']}", flush=True)
        return books

    def test_the_program_is_killed(self):
        seen = [self.round(index, ["program"]) for index in range(PROGRAM_ROUNDS)]
        self.assertTrue(any(books["recorded"] for books in seen))

    def test_the_recorder_is_killed(self):
        seen = [self.round(index, ["recorder"]) for index in range(RECORDER_ROUNDS)]
        self.assertTrue(any(books["recorded"] for books in seen))

    def test_both_are_killed(self):
        for index in range(BOTH_ROUNDS):
            victims = ["program", "recorder"]
            self.random.shuffle(victims)
            self.round(index, victims)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
