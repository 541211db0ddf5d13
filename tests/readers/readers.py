"""What the tests of foreign readers share: recordings, what `xpu report` says of them, and how a test ends that could not be made."""
import sys
import unittest
from pathlib import Path

from harness import BIN, SCRATCH, XPU, EndToEndTest, environment, null_driver, pocl, record_command, report, run

SKIPPED = 77  # CTest's SKIP_RETURN_CODE of these tests
TRAINING_STEPS = Path(__file__).resolve().parent / "programs" / "training_steps.py"
SYSTEM_PYTHON = Path("/usr/bin/python3")  # the one that Debian's pyopencl belongs to
STEPS = 4
# Names that a writer or a reader of JSON may stumble over.
ODD_NAMES = ('a<b, "c">(int*)', "naïve 数", "back\\slash", "{json: [1]}", "tab\t, newline\n, escape\x1b[1m")


def training_steps(rank, folder):
    """The command and the environment of one rank of the training loop, on PoCL."""
    return [SYSTEM_PYTHON, TRAINING_STEPS, STEPS, rank], pocl(XPU_RANK=rank, HOME=folder, PYOPENCL_NO_CACHE="1")


def programs(folder):
    """Name to command and environment of programs that differ in what their traces hold."""
    return {
        "training": training_steps(0, folder),
        "first_program": ([BIN / "first_program"], environment(XPU_CACHE_DIR=SCRATCH / "kernels")),
        "odd_names": ([BIN / "xpu_test_runtime", "kernels", 20, *ODD_NAMES], environment(XPU_DRIVER="host")),
        # One queue whose commands run beside each other.
        "overlapping": ([BIN / "xpu_test_workload", "ooo", 2000, 100], null_driver(XPU_NULL_DURATION_NS=30_000)),
    }


class ReaderTest(EndToEndTest):
    maxDiff = None

    def record(self, name, command, env, limit=120):
        recording = self.folder / f"{name}.xpu"
        finished = run(record_command(recording, command), env, timeout=limit)
        self.assertEqual(finished.code, 0, finished)
        figures = report(recording)
        self.assert_books_balance(figures)
        self.assertEqual(figures["conservation"]["recorded"], figures["conservation"]["submitted"])
        self.assertEqual(figures["conservation"]["untimed"], 0, "a command without times is in no trace")
        return recording, figures

    def export(self, recording, path, *options):
        finished = run([XPU, "export", "-o", path, *options, recording], environment(), timeout=120)
        self.assertEqual(finished.code, 0, finished)
        return path


def kernels(figures):
    """Name to calls and nanoseconds in all, over all devices."""
    rows = {}
    for kernel in figures["kernels"]:
        calls, total = rows.get(kernel["name"], (0, 0))
        rows[kernel["name"]] = (calls + kernel["calls"], total + kernel["total_ns"])
    return rows


SHORT = {"host_to_device": "HtoD", "device_to_host": "DtoH", "device_to_device": "DtoD"}


def copies(figures):
    """"Memcpy HtoD" and so on to calls, nanoseconds and bytes. Routes with another name than these three are left out."""
    return {f"Memcpy {SHORT[copy['route']]}": (copy["calls"], copy["total_ns"], copy["bytes"]) for copy in figures["copies"] if copy["route"] in SHORT}


def fills(figures):
    """Calls and nanoseconds of all fills."""
    return sum(fill["calls"] for fill in figures["fills"]), sum(fill["total_ns"] for fill in figures["fills"])


def device_commands(figures):
    """Kernels, copies and fills: the commands that a reader takes for work of the device."""
    return sum(row["calls"] for table in ("kernels", "copies", "fills") for row in figures[table])


def main():
    """Runs the tests of the file. One that was skipped makes the file skipped, so that it is counted and its reason shown."""
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful() or result.testsRun + len(result.skipped) == 0:
        sys.exit(1)
    for reason in sorted({reason for _, reason in result.skipped}):
        print(f"skipped: {reason}", flush=True)
    sys.exit(SKIPPED if result.skipped else 0)
