"""What the end-to-end tests share: where things are, and running programs that may hang.

Every program runs in a session of its own with a hard time limit; at the limit its whole process group is killed.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

BUILD = Path(os.environ["XPU_TEST_BUILD"])
BIN = BUILD / "bin"
LIB = BUILD / "lib"
XPU = BIN / "xpu"
LAYER = LIB / "libxpu_layer_opencl.so"
COUNTING_LAYER = LIB / "libxpu_test_counting_layer.so"
NULL_ICD = LIB / "null_icd"
POCL_ICD = Path("/etc/OpenCL/vendors/pocl.icd")
# Kernels compiled once are kept between runs, so that no run is timed with the compiler in it.
POCL_CACHE = Path(os.environ.get("XPU_TEST_POCL_CACHE", BUILD.parent / "pocl_cache"))
SCRATCH = BUILD / "end_to_end"


class Finished:
    """How a program ended: exit code (negative: -signal), output as bytes, seconds, whether it was killed at its limit."""

    def __init__(self, code, stdout, stderr, seconds, timed_out):
        self.code, self.stdout, self.stderr, self.seconds, self.timed_out = code, stdout, stderr, seconds, timed_out

    def __repr__(self):
        return f"exit {self.code}, {self.seconds:.2f} s, timed out {self.timed_out}\nstdout: {self.stdout[-2000:]!r}\nstderr: {self.stderr[-2000:]!r}"


def environment(**extra):
    """The tests' environment: none of our own variables, PoCL's cache in the build folder. A value of None removes a variable."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("XPU_", "OPENCL_LAYERS", "OCL_ICD_"))}
    POCL_CACHE.mkdir(parents=True, exist_ok=True)
    env["POCL_CACHE_DIR"] = str(POCL_CACHE)
    for name, value in extra.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


def pocl(**extra):
    return environment(OCL_ICD_VENDORS=POCL_ICD, **extra)


def null_driver(**extra):
    return environment(OCL_ICD_VENDORS=NULL_ICD, **extra)


def start(command, env, cwd=None, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more):
    return subprocess.Popen([str(part) for part in command], env=env, cwd=cwd, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True, **more)


def finish(process, timeout, started=None):
    started = started or time.monotonic()
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        kill_group(process)
        stdout, stderr = process.communicate()
    return Finished(process.returncode, stdout or b"", stderr or b"", time.monotonic() - started, timed_out)


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, env, timeout=60, cwd=None, input=None, **more):
    started = time.monotonic()
    process = start(command, env, cwd=cwd, stdin=subprocess.PIPE if input is not None else subprocess.DEVNULL, **more)
    if input is not None:
        process.stdin.write(input)
        process.stdin.close()
        process.stdin = None
    return finish(process, timeout, started)


def record_command(recording, command, *options):
    return [XPU, "record", "-f", "-o", recording, *options, "--", *command]


def report(recording, timeout=120, *options):
    finished = run([XPU, "report", "--json", recording, *options], environment(), timeout)
    if finished.code != 0:
        raise AssertionError(f"xpu report failed: {finished}")
    return json.loads(finished.stdout)


def dump(recording, timeout=120):
    """The records of a recording as {"operation": [{key: value}], "wait": …, "reading": …, "map": …}; whole numbers are ints."""
    finished = run([BIN / "dump_recording", recording], environment(), timeout)
    if finished.code != 0:
        raise AssertionError(f"dump_recording failed: {finished}")
    records = {"operation": [], "wait": [], "reading": [], "map": []}
    for line in finished.stdout.decode(errors="replace").splitlines():
        kind, *fields = line.split(" ")
        entry = {}
        for field in fields:
            key, value = field.split("=", 1)
            entry[key] = int(value) if re.fullmatch(r"-?\d+", value) else value
        records[kind].append(entry)
    return records


def outside_counts(prefix):
    """The sums of what the counting layer of the tests counted, over all processes that wrote PREFIX.<pid>.counts."""
    total = {"submitted": 0, "refused": 0}
    files = sorted(Path(prefix).parent.glob(Path(prefix).name + ".*.counts"))
    for file in files:
        counts = json.loads(run([BIN / "xpu_test_counts", file], environment(), 20).stdout)
        for key in total:
            total[key] += counts[key]
    if not files:
        raise AssertionError(f"the counting layer wrote nothing at {prefix}.*.counts")
    return total


class EndToEndTest(unittest.TestCase):
    """A test with a fresh folder, removed when the test passed."""

    def setUp(self):
        SCRATCH.mkdir(parents=True, exist_ok=True)
        self.folder = Path(tempfile.mkdtemp(prefix=self.id().split(".")[-1] + "-", dir=SCRATCH))

    def tearDown(self):
        outcome = self._outcome.result
        broken = any(test is self for test, _ in outcome.failures + outcome.errors)
        if not broken:
            shutil.rmtree(self.folder, ignore_errors=True)

    def assert_books_balance(self, figures, submitted=None, failed=None):
        books = figures["conservation"]
        self.assertEqual(books["unexplained"], 0, books)
        for queue in books["queues"]:
            self.assertEqual(queue["unexplained"], 0, queue)
        if submitted is not None:
            self.assertEqual(books["submitted"], submitted, books)
        if failed is not None:
            self.assertEqual(sum(entry["failed"] for entry in figures["api"]), failed, figures["api"])


def needs(*programs):
    """Skips a test when a program of the system is not installed, and says which."""
    missing = [program for program in programs if shutil.which(str(program)) is None and not Path(program).exists()]
    return unittest.skipIf(missing, f"not installed: {', '.join(map(str, missing))}")
