"""Real programs that nobody here wrote, on PoCL, each with and without recording: they must not notice, and nothing may be missing."""
import re
import shutil
import sys
import unittest
from pathlib import Path

from harness import (BIN, COUNTING_LAYER, POCL_ICD, EndToEndTest, dump, needs, outside_counts, pocl, record_command, report, run)

PYOPENCL_EXAMPLES = Path("/usr/share/doc/python-pyopencl-doc/examples")
SYSTEM_PYTHON = Path("/usr/bin/python3")  # The one that Debian's pyopencl belongs to.

NUMBER = re.compile(rb"\d+(\.\d+)?(e[-+]?\d+)?")


def without_numbers_on(*markers):
    """A filter that blanks the numbers of the lines which report speeds and times, and leaves every other line as it is."""
    pattern = re.compile(b"|".join(markers)) if markers else None

    def clean(text):
        lines = text.replace(b"\r", b"\n").splitlines()
        return [NUMBER.sub(b"#", line) if pattern and pattern.search(line) else line for line in lines]

    return clean


def without_lines(*markers, then=lambda text: text.splitlines()):
    """A filter that leaves out the lines whose very number depends on speed (progress)."""
    pattern = re.compile(b"|".join(markers))

    def clean(text):
        return [line for line in then(text) if not pattern.search(line)]

    return clean


@needs(POCL_ICD)
class RealProgramsTest(EndToEndTest):
    def compare(self, command, stdout_filter, stderr_filter=without_numbers_on(), environment=None, outputs=(), untimed_allowed=0, warm_seconds=300):
        """Runs `command` untraced (twice: the first fills the kernel cache) and traced; everything that a person can see must be equal."""
        environment = environment or {}
        warm_folder, plain_folder, traced_folder = (self.folder / name for name in ("warm", "plain", "traced"))
        for folder in (warm_folder, plain_folder, traced_folder):
            folder.mkdir()
        warm = run(command, pocl(**environment), timeout=warm_seconds, cwd=warm_folder)
        self.assertFalse(warm.timed_out, warm)
        plain = run(command, pocl(**environment), timeout=120, cwd=plain_folder)
        self.assertFalse(plain.timed_out, plain)

        recording, counts = self.folder / "run.xpu", self.folder / "counts"
        traced = run(record_command(recording, command), pocl(OPENCL_LAYERS=COUNTING_LAYER, XPU_TEST_COUNTS=counts, **environment),
                     timeout=max(20, 5 * plain.seconds), cwd=traced_folder)
        self.assertFalse(traced.timed_out, traced)
        self.assertEqual(traced.code, plain.code, traced)
        self.assertEqual(stdout_filter(traced.stdout), stdout_filter(plain.stdout))
        ours = [line for line in traced.stderr.splitlines() if line.startswith((b"xpu: ", b"     ", b"next: "))]
        self.assertTrue(ours, "xpu record says nothing at the end")
        theirs = b"\n".join(line for line in traced.stderr.splitlines() if line not in ours)
        self.assertEqual([line for line in stderr_filter(theirs) if line], [line for line in stderr_filter(plain.stderr) if line])
        for name in outputs:
            self.assertEqual((traced_folder / name).read_bytes(), (plain_folder / name).read_bytes(), name)

        figures = report(recording)
        outside = outside_counts(counts)
        self.assert_books_balance(figures, submitted=outside["submitted"], failed=outside["refused"])
        self.assertGreater(outside["submitted"], 0)
        self.assertLessEqual(figures["conservation"]["untimed"], untimed_allowed)
        self.assertEqual(figures["conservation"]["lost"], 0)
        self.assertEqual(figures["conservation"]["pending"], 0)
        self.assertEqual(figures["program"]["exit_code"], plain.code)
        self.assert_times_are_right(recording)
        return figures

    def assert_times_are_right(self, recording):
        """enter <= queued and end <= first observation, within the stated error, and the error itself is at most 20 us."""
        records = dump(recording)
        finishes = {}
        for wait in records["wait"]:
            if wait["api"] == "clFinish" and wait["result"] == 0:
                finishes.setdefault((wait["process"], wait["queue"]), []).append((wait["enter"], wait["exit"]))
        checked = 0
        for operation in records["operation"]:
            if not operation.get("done") or operation["untimed"] or operation["command_failed"]:
                continue
            self.assertIn("mapped_end", operation, "no clock map for a device with timed work")
            self.assertLessEqual(operation["error_end"], 20_000, operation)
            self.assertGreaterEqual(operation["mapped_queued"] + operation["error_queued"], operation["enter"], operation)
            seen = [left for entered, left in finishes.get((operation["process"], operation["queue"]), ()) if entered >= operation["exit"]]
            if seen:
                self.assertLessEqual(operation["mapped_end"] - operation["error_end"], min(seen), operation)
                checked += 1
        return checked

    @needs("clpeak")
    def test_clpeak(self):
        figures = self.compare(["clpeak", "--kernel-latency", "--global-bandwidth"],
                               stdout_filter=without_numbers_on(rb"float\d* *:", rb"latency", rb"Clock frequency"))
        self.assertGreater(sum(kernel["calls"] for kernel in figures["kernels"]), 100)

    @needs("hashcat")
    def test_hashcat_finds_the_password(self):
        shutil.copytree("/usr/share/hashcat", self.folder / "hashcat", symlinks=True)
        digest = "5d41402abc4b2a76b9719d911017c592"
        speed = (rb"Speed\.", rb"^Started", rb"^Stopped", rb"Time\.", rb"Candidates", rb"Hardware\.Mon", rb"MB", rb"secs?\b", rb"Host memory")
        figures = self.compare(["hashcat", "--force", "-D", "1", "-m", "0", "-a", "3", "--potfile-disable", "-o", "found.txt", digest, "hell?l"],
                               stdout_filter=without_lines(*speed, rb"\[s\]tatus"),
                               environment={"HOME": self.folder}, outputs=["found.txt"], warm_seconds=400)
        self.assertEqual((self.folder / "traced" / "found.txt").read_text().strip(), f"{digest}:hello")
        self.assertTrue(any(kernel["name"].startswith("m00000") for kernel in figures["kernels"]), figures["kernels"])

    @needs(BIN / "clblast_gemm")
    def test_clblast(self):
        figures = self.compare([BIN / "clblast_gemm"], stdout_filter=without_numbers_on())
        self.assertGreaterEqual(sum(kernel["calls"] for kernel in figures["kernels"]), 20)

    @needs(PYOPENCL_EXAMPLES, SYSTEM_PYTHON)
    def test_pyopencl_demos(self):
        for demo in ("demo.py", "demo_array.py", "demo_elementwise.py", "svm.py", "demo-struct-reduce.py"):
            with self.subTest(demo):
                for folder in ("warm", "plain", "traced"):
                    shutil.rmtree(self.folder / folder, ignore_errors=True)
                for counts in self.folder.glob("counts.*"):
                    counts.unlink()
                random = "import numpy; numpy.random.seed(1)"
                script = self.folder / demo
                script.write_text(f"{random}\n" + (PYOPENCL_EXAMPLES / demo).read_text())
                self.compare([SYSTEM_PYTHON, script], stdout_filter=without_numbers_on(rb"time|sec|GB/s|GFlop|ms"),
                             environment={"PYOPENCL_CTX": "0", "HOME": self.folder, "PYTHONHASHSEED": "0", "PYOPENCL_NO_CACHE": "1"})

    @needs(SYSTEM_PYTHON, PYOPENCL_EXAMPLES)
    def test_two_devices(self):
        script = self.folder / "two_devices.py"
        script.write_text("""
import numpy
import pyopencl as cl

for index, device in enumerate(cl.get_platforms()[0].get_devices()):
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    program = cl.Program(context, "kernel void square(global float* x) { x[get_global_id(0)] *= x[get_global_id(0)]; }").build()
    values = numpy.arange(64, dtype=numpy.float32)
    buffer = cl.Buffer(context, cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=values)
    for _ in range(2):
        program.square(queue, values.shape, None, buffer)
    cl.enqueue_copy(queue, values, buffer)
    print(index, values.sum())
""")
        figures = self.compare([SYSTEM_PYTHON, script], stdout_filter=without_numbers_on(),
                               environment={"POCL_DEVICES": "pthread pthread", "HOME": self.folder, "PYOPENCL_NO_CACHE": "1"})
        self.assertEqual(len({kernel["device"] for kernel in figures["kernels"]}), 2, figures["kernels"])

    def test_two_threads_share_a_queue(self):
        self.compare([BIN / "xpu_test_workload", "mtshared", "2000", "100", "2"], stdout_filter=without_numbers_on(rb"RESULT"))

    def test_stamps_equal_what_the_program_reads(self):
        recording = self.folder / "run.xpu"
        traced = run(record_command(recording, [BIN / "xpu_test_profiling"]), pocl(), timeout=60)
        self.assertEqual(traced.code, 0, traced)
        read_by_program = {}
        for line in traced.stdout.decode().splitlines():
            fields = line.split()
            if len(fields) == 6 and all(field.isdigit() for field in fields):
                queue, sequence, *stamps = map(int, fields)
                read_by_program.setdefault(queue, {})[sequence] = stamps
        self.assertTrue(read_by_program, traced)
        ours = {}
        for operation in dump(recording)["operation"]:
            ours.setdefault(operation["queue"], {})[operation["sequence"]] = [operation[stamp] for stamp in ("queued", "submit", "start", "end")]
        self.assertEqual(len(ours), len(read_by_program))
        compared = 0
        for (_, by_us), (_, by_program) in zip(sorted(ours.items()), sorted(read_by_program.items())):
            for sequence, stamps in by_program.items():
                self.assertEqual(by_us[sequence], stamps)
                compared += 1
        self.assertGreater(compared, 10)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=[sys.argv[0], *sys.argv[1:]])
