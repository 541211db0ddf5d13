"""When nothing was recorded, `xpu record` says why: a program for each reason, and the program is not disturbed by being looked at."""
import os
import shutil
import subprocess
import sys
import unittest

from harness import BIN, COUNTING_LAYER, LAYER, LIB, XPU, EndToEndTest, environment, needs, null_driver, record_command, run

PATIENCE = 60
# The programs launch 64 times: slow enough to be looked at, on any machine.
SLOW = {"XPU_NULL_ENQUEUE_NS": 5_000_000}
SAID = b"xpu: nothing was recorded: "


class DiagnosisTest(EndToEndTest):
    def reason(self, command, env, xpu=XPU, code=0, **more):
        finished = run([xpu, "record", "-f", "-o", self.folder / "run", "--", *command], env, PATIENCE, **more)
        self.assertEqual(finished.code, code, finished)
        said = [line[len(SAID):].decode() for line in finished.stderr.splitlines() if line.startswith(SAID)]
        self.assertEqual(len(said), 1, finished)
        return said[0]

    def test_no_opencl_loader(self):
        self.assertIn("neither an OpenCL loader (libOpenCL.so) nor libxpu was mapped", self.reason(["sh", "-c", "sleep 0.3; exit 3"], environment(), code=3))

    def test_a_loader_that_knows_no_layers(self):
        # The stub's commands cost nothing, so it takes many to be there for a while.
        reason = self.reason([BIN / "xpu_test_loader_without_layers", 100_000_000], environment())
        self.assertIn("knows no layers", reason)
        self.assertIn(str(LIB / "stub_loader" / "libOpenCL.so.1"), reason)

    def test_another_tool_in_the_environment(self):
        reason = self.reason(["env", f"OPENCL_LAYERS={COUNTING_LAYER}", BIN / "xpu_test_workload", "launch", 64, 64], null_driver(**SLOW))
        self.assertIn("another tool holds the OpenCL layers", reason)
        self.assertIn(f"OPENCL_LAYERS={COUNTING_LAYER}", reason)

    def test_a_program_that_sets_layers_of_its_own(self):
        reason = self.reason([BIN / "xpu_test_own_layers", COUNTING_LAYER], null_driver(**SLOW))
        self.assertIn("another tool holds the OpenCL layers", reason)
        self.assertIn(COUNTING_LAYER.name, reason)

    def test_a_program_that_takes_our_layer_away(self):
        reason = self.reason([BIN / "xpu_test_own_layers", ""], null_driver(**SLOW))
        self.assertIn("cleared or changed OPENCL_LAYERS", reason)

    def test_a_cleared_environment(self):
        reason = self.reason([BIN / "xpu_test_clears_environment", "OCL_ICD_VENDORS", *SLOW], null_driver(**SLOW))
        self.assertIn("started with a cleared environment", reason)

    def test_a_loader_that_is_never_called(self):
        program = "import ctypes, time; ctypes.CDLL('libOpenCL.so.1'); time.sleep(0.3)"
        self.assertIn("no OpenCL driver was opened", self.reason([sys.executable, "-c", program], null_driver()))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to give a program away")
    def test_raised_privileges(self):
        program = self.folder / "privileged"
        shutil.copy(shutil.which("sleep"), program)
        os.chown(program, 1, 1)
        program.chmod(0o6755)
        self.assertIn("raised privileges", self.reason([program, "0.3"], environment()))

    @needs("cc")
    def test_too_short_to_be_seen_is_not_guessed(self):
        # A program without any library, gone after one system call.
        source = "void _start(void) { __asm__ volatile(\"mov $60, %eax; xor %edi, %edi; syscall\"); }"
        program = self.folder / "short"
        made = subprocess.run(["cc", "-x", "c", "-nostdlib", "-static", "-o", program, "-"], input=source.encode(), check=False)
        if made.returncode != 0:
            self.skipTest("no compiler for this machine")
        self.assertIn("not known", self.reason([program], environment()))

    def test_opencl_without_a_command(self):
        program = ("import ctypes, time; cl = ctypes.CDLL('libOpenCL.so.1'); n = ctypes.c_uint(); cl.clGetPlatformIDs(0, None, ctypes.byref(n)); "
                   "time.sleep(0.3)")
        finished = run(record_command(self.folder / "run", [sys.executable, "-c", program]), null_driver(), PATIENCE)
        self.assertIn(b"used", finished.stderr)
        self.assertRegex(finished.stderr, rb"xpu: .*OpenCL .*no command")

    def test_a_recorded_program_needs_no_explanation(self):
        finished = run(record_command(self.folder / "run", [BIN / "xpu_test_workload", "launch", 64, 64]), null_driver(**SLOW), PATIENCE)
        self.assertEqual(finished.code, 0, finished)
        self.assertNotIn(b"nothing was recorded", finished.stderr)


class BrokenInstallationTest(EndToEndTest):
    """A copy of the installation in which only the layer is broken."""

    def setUp(self):
        super().setUp()
        for folder in ("bin", "lib"):
            (self.folder / folder).mkdir()
        self.xpu = self.folder / "bin" / "xpu"
        shutil.copy(XPU, self.xpu)
        for library in LIB.glob("libxpu.so*"):
            shutil.copy(library, self.folder / "lib" / library.name, follow_symlinks=False)
        self.layer = self.folder / "lib" / LAYER.name

    def record(self, command, env):
        return run([self.xpu, "record", "-f", "-o", self.folder / "run", "--", *command], env, PATIENCE)

    def workload(self):
        return self.record([BIN / "xpu_test_workload", "launch", 64, 64], null_driver(**SLOW))

    def test_a_layer_that_is_no_library(self):
        self.layer.write_bytes(b"not a library")
        finished = self.workload()
        self.assertEqual(finished.code, 0, finished)
        self.assertRegex(finished.stderr, rb"xpu: nothing was recorded: the OpenCL layer could not be loaded: .*" + self.layer.name.encode())

    @needs("cc")
    def test_a_layer_that_lacks_a_library_of_its_own(self):
        subprocess.run(["cc", "-shared", "-o", self.folder / "lib" / "libxpu_test_gone.so", "-x", "c", "-Wl,-soname,libxpu_test_gone.so", "/dev/null"],
                       check=True)
        subprocess.run(["cc", "-shared", "-Wl,--no-as-needed", "-o", self.layer, "-x", "c", "/dev/null", "-x", "none",
                        self.folder / "lib" / "libxpu_test_gone.so"], check=True)
        (self.folder / "lib" / "libxpu_test_gone.so").unlink()
        finished = self.workload()
        self.assertIn(b"libxpu_test_gone.so: cannot open shared object file", finished.stderr)

    def test_a_missing_layer_is_said_before_the_program_starts(self):
        finished = self.record(["touch", self.folder / "started"], environment())
        self.assertEqual(finished.code, 125, finished)
        self.assertIn(str(self.layer).encode(), finished.stderr)
        self.assertFalse((self.folder / "started").exists())


if __name__ == "__main__":
    unittest.main(verbosity=2)
