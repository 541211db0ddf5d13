"""A full file system and a file-size limit: the program ends as it does without us, what fitted is readable, the loss is counted."""
import json
import os
import resource
import subprocess
import sys
import unittest
from pathlib import Path

from harness import BIN, XPU, EndToEndTest, environment, null_driver, record_command, report, run

WORKLOAD = BIN / "xpu_test_workload"


def can_mount():
    return os.geteuid() == 0 and subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0


class StorageTest(EndToEndTest):
    def check(self, finished, plain, recording, figures=None):
        self.assertEqual(finished.code, plain.code, finished)
        figures = figures or report(recording)
        books = figures["conservation"]
        self.assertEqual(books["unexplained"], 0, books)
        self.assertGreater(books["recorded"], 0)
        self.assertGreater(books["lost"], 0, "the limit was too generous to test anything")
        self.assertEqual(books["recorded"] + books["lost"] + books["pending"], books["submitted"], books)
        return books

    def test_file_size_limit(self):
        limit = 5 << 20  # a little more than one segment of 4 MiB
        workload = [WORKLOAD, "launch", 4_000_000, 1000]
        environment_ = null_driver()
        plain = run([WORKLOAD, "launch", 1000, 1000], environment_)
        recording = self.folder / "run.xpu"
        finished = run(record_command(recording, workload, "--max-live", "16M"), environment_, timeout=120,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
        left = recording if recording.exists() else Path(f"{recording}.live")
        books = self.check(finished, plain, left)
        self.assertIn(b"lost", finished.stderr)
        print(f"\nfile-size limit {limit >> 20} MiB: {books}")

    @unittest.skipUnless(can_mount(), "needs the right to mount a small file system")
    def test_full_file_system(self):
        mounted = self.folder / "small"
        mounted.mkdir()
        plain = run([WORKLOAD, "launch", 1000, 1000], null_driver())
        # The mount lives in a namespace of its own and ends with it; the report is made inside.
        script = (f"mount -t tmpfs -o size=11m none {mounted} && "
                  f"{XPU} record -f --max-live 16M -o {mounted}/run.xpu -- {WORKLOAD} launch 4000000 1000; code=$?; "
                  f"{XPU} report --json {mounted}/run > {self.folder}/report.json; exit $code")
        finished = run(["unshare", "--mount", "bash", "-c", script], null_driver(), timeout=180)
        figures = json.loads((self.folder / "report.json").read_text())
        books = self.check(finished, plain, None, figures)
        print(f"\nfull file system of 11 MiB: {books}")

    def test_a_folder_that_cannot_be_written_is_said_before_the_program_starts(self):
        finished = run(record_command("/proc/nowhere/run.xpu", ["true"]), environment())
        self.assertEqual(finished.code, 125, finished)
        self.assertIn(b"/proc/nowhere", finished.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
