"""What the tests of the package share. They use whatever package `xpu` this interpreter imports: that of a build tree, or an installed one."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

SKIPPED = 77  # CTest's SKIP_RETURN_CODE of these tests
ROOT = Path(__file__).resolve().parents[2]

# Settings of whoever runs the tests are not theirs.
for name in [name for name in os.environ if name.startswith("XPU_") and not name.startswith("XPU_TEST_") or name == "OPENCL_LAYERS"]:
    del os.environ[name]


class Finished:
    """How a program ended: exit code (negative: -signal), output as text, whether it was killed at its limit."""

    def __init__(self, code, stdout, stderr, timed_out):
        self.code, self.stdout, self.stderr, self.timed_out = code, stdout, stderr, timed_out

    def __repr__(self):
        return f"exit {self.code}, timed out {self.timed_out}\nstdout: {self.stdout[-3000:]}\nstderr: {self.stderr[-3000:]}"


def start(command, cwd=None, **env):
    """In a session of its own, so that its processes can be ended together."""
    return subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env={**os.environ, **{name: str(value) for name, value in env.items()}},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def finish(process, timeout):
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        stdout, stderr = process.communicate()
    return Finished(process.returncode, stdout.decode(errors="replace"), stderr.decode(errors="replace"), timed_out)


def run(command, timeout=60, cwd=None, **env):
    return finish(start(command, cwd, **env), timeout)


def run_python(code, timeout=60, **env):
    """Another interpreter with the same package."""
    return run([sys.executable, "-c", code], timeout, **env)


class PackageTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="xpu_python_test_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def assert_prints(self, code, expected, **env):
        finished = run_python(code, **env)
        self.assertEqual(finished.code, 0, finished)
        self.assertEqual(finished.stdout.strip(), expected, finished)

    def assert_books_balance(self, report, submitted=None):
        books = report["conservation"]
        self.assertEqual(books["unexplained"], 0, books)
        self.assertEqual(books["lost"], 0, books)
        if submitted is not None:
            self.assertEqual((books["submitted"], books["recorded"]), (submitted, submitted), books)


def wait_until(is_true, limit_seconds=30.0):
    """Until it is, or the limit: whether it is."""
    end = time.monotonic() + limit_seconds
    while not is_true():
        if time.monotonic() > end:
            return False
        time.sleep(0.001)
    return True


def main():
    """Runs the tests of the file. One that was skipped makes the file skipped, so that it is counted and its reason shown."""
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful() or result.testsRun + len(result.skipped) == 0:
        sys.exit(1)
    for reason in sorted({reason for _, reason in result.skipped}):
        print(f"skipped: {reason}", flush=True)
    sys.exit(SKIPPED if result.skipped else 0)
