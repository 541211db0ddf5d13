"""The wheel, built from this tree and installed into a fresh environment, as its users have it.

    XPU_TEST_WORK    a folder that is emptied first
"""

import email
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
import zipfile
from pathlib import Path

import support
from support import ROOT, run, wait_until

CANNOT_BE_HAD = 75  # exit code of tools/build_wheel.sh
WORK = Path(os.environ["XPU_TEST_WORK"])
ENVIRONMENT = WORK / "environment"
PYTHON = ENVIRONMENT / "bin" / "python"
COMMAND = ENVIRONMENT / "bin" / "xpu"
# The package of the build tree is not what is tested here.
os.environ.pop("PYTHONPATH", None)

RUNPATHS = {
    "xpu/lib/libxpu.so.0": None,
    "xpu/lib/libxpu_layer_opencl.so": "$ORIGIN",
    "xpu/bin/xpu": "$ORIGIN/../lib",
}


def build():
    built = run(["bash", ROOT / "tools" / "build_wheel.sh"], 1500, XPU_PYTHON=sys.executable)
    if built.code == CANNOT_BE_HAD:
        raise unittest.SkipTest(built.stderr.strip())
    if built.code != 0:
        raise AssertionError(f"the wheel was not built: {built}")
    return Path(built.stdout.splitlines()[-1])


def dynamic_section(path):
    text = subprocess.run(["readelf", "--dynamic", path], capture_output=True, text=True, check=True).stdout
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", text)
    runpath = re.search(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)
    return needed, runpath and runpath[1], "(RPATH)" in text


def library_of(path):
    """Where the dynamic linker takes libxpu.so.0 from."""
    text = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
    return Path(re.search(r"libxpu\.so\.0 => (\S+)", text)[1]).resolve()


class WheelTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        shutil.rmtree(WORK, ignore_errors=True)
        WORK.mkdir(parents=True)
        cls.wheel = build()
        with zipfile.ZipFile(cls.wheel) as archive:
            cls.entries = archive.infolist()
            cls.names = [entry.filename for entry in cls.entries]
            cls.metadata = email.message_from_bytes(archive.read(next(name for name in cls.names if name.endswith(".dist-info/METADATA"))))
        for command in ([sys.executable, "-m", "venv", ENVIRONMENT], [PYTHON, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", cls.wheel]):
            finished = run(command, 120)
            if finished.code != 0:
                raise AssertionError(finished)
        cls.site = Path(run([PYTHON, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"]).stdout.strip())
        cls.package = cls.site / "xpu"
        cls.binaries = {name: cls.site / name for name in cls.names if ".so" in Path(name).name or name == "xpu/bin/xpu"}
        cls.library = (cls.package / "lib" / "libxpu.so.0").resolve()

    # What is in it

    def test_metadata(self):
        version = re.search(r"project\(xpu\s+VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertRegex(self.wheel.name, rf"^libxpu-{re.escape(version)}-cp3\d+-cp3\d+-linux_x86_64\.whl$")
        found = {key: self.metadata[key] for key in ("Name", "Version", "Requires-Python", "License-Expression", "License-File")}
        self.assertEqual(
            found, {"Name": "libxpu", "Version": version, "Requires-Python": ">=3.11", "License-Expression": "Apache-2.0", "License-File": "LICENSE"}
        )
        self.assertTrue(self.metadata["Summary"])
        self.assertIsNone(self.metadata["Requires-Dist"])
        self.assertTrue(any(name.endswith(".dist-info/licenses/LICENSE") for name in self.names))

    def test_layout(self):
        top = {name.split("/")[0] for name in self.names}
        info = {name for name in top if name.endswith((".dist-info", ".data"))}
        self.assertEqual(top - info, {"xpu"})
        self.assertEqual([name for name in self.names if ".data/" in name and not name.endswith(".data/scripts/xpu")], [])
        modules = {path.name for path in (ROOT / "src" / "python" / "xpu").iterdir() if path.is_file()}
        there = {Path(name).name for name in self.names if re.fullmatch(r"xpu/[^/]+", name) and not name.endswith(".so")}
        self.assertEqual(there, modules)
        self.assertEqual(len([name for name in self.names if re.fullmatch(r"xpu/_core\.cpython-\S+\.so", name)]), 1)
        headers = {f"xpu/include/{path.relative_to(ROOT / 'include')}" for path in (ROOT / "include").rglob("*") if path.is_file()}
        self.assertEqual({name for name in self.names if name.startswith("xpu/include/")}, headers)
        for name in (*RUNPATHS, "xpu/lib/cmake/xpu/xpuConfig.cmake", "xpu/lib/cmake/xpu/xpuTargets.cmake"):
            self.assertIn(name, self.names)

    def test_the_library_is_there_once_and_nothing_is_a_link(self):
        self.assertEqual([name for name in self.names if re.search(r"libxpu\.(so|a)", name)], ["xpu/lib/libxpu.so.0"])
        self.assertEqual([entry.filename for entry in self.entries if (entry.external_attr >> 16) & 0o170000 == 0o120000], [])

    def test_binaries_find_each_other_by_their_own_place(self):
        expected = {**RUNPATHS, next(name for name in self.binaries if "_core" in name): "$ORIGIN/lib"}
        self.assertEqual(set(self.binaries), set(expected))
        for name, path in self.binaries.items():
            needed, runpath, is_old = dynamic_section(path)
            self.assertEqual((runpath, is_old), (expected[name], False), name)
            if name != "xpu/lib/libxpu.so.0":
                self.assertIn("libxpu.so.0", needed, name)
                self.assertEqual(library_of(path), self.library, name)

    def test_no_path_of_this_machine_in_its_texts(self):
        with zipfile.ZipFile(self.wheel) as archive:
            for name in self.names:
                if name.endswith((".cmake", ".py", ".pyi", "RECORD")):
                    self.assertNotIn(str(ROOT), archive.read(name).decode(), name)

    # The command xpu

    def test_the_command_is_the_program(self):
        for arguments in (["--version"], ["info"], ["record", "--help"], ["no-such-command"], []):
            ours, direct = run([COMMAND, *arguments]), run([self.package / "bin" / "xpu", *arguments])
            self.assertEqual((ours.code, ours.stdout, ours.stderr), (direct.code, direct.stdout, direct.stderr))

    def test_exit_codes_and_signals_are_the_programs_own(self):
        recording = WORK / "exit.xpu"
        for script, code in (("exit 7", 7), ("exit 0", 0), ("kill -USR1 $$", -signal.SIGUSR1)):
            ours = run([COMMAND, "record", "-f", "-o", recording, "--", "sh", "-c", script])
            direct = run([self.package / "bin" / "xpu", "record", "-f", "-o", recording, "--", "sh", "-c", script])
            self.assertEqual((ours.code, direct.code), (code, code), (ours, direct))

        process = support.start([COMMAND, "record", "-f", "-o", recording, "--", "sh", "-c", "trap 'exit 5' TERM; touch ready; while :; do sleep 0.01; done"], WORK)
        try:
            self.assertTrue(wait_until((WORK / "ready").exists))
            # No interpreter stays in between.
            self.assertEqual(Path(f"/proc/{process.pid}/exe").resolve(), (self.package / "bin" / "xpu").resolve())
            process.send_signal(signal.SIGTERM)
        finally:
            finished = support.finish(process, 30)
        self.assertEqual((finished.code, finished.timed_out), (5, False), finished)

    def test_a_program_gets_the_signals_that_xpu_itself_would_give_it(self):
        states = []
        for program in (COMMAND, self.package / "bin" / "xpu"):
            finished = run([program, "record", "-f", "-o", WORK / "signals.xpu", "--", "grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status"])
            self.assertEqual(finished.code, 0, finished)
            states.append(finished.stdout)
        self.assertEqual(states[0], states[1])

    def test_a_folder_named_xpu_where_it_is_called_changes_nothing(self):
        (WORK / "elsewhere" / "xpu").mkdir(parents=True)
        (WORK / "elsewhere" / "xpu" / "__init__.py").write_text("raise SystemExit('the wrong package')\n")
        finished = run([COMMAND, "--version"], cwd=WORK / "elsewhere")
        self.assertEqual(finished.code, 0, finished)

    # Recording

    def test_a_python_program_is_recorded(self):
        recording = WORK / "python.xpu"
        code = "import xpu; s = xpu.Stream(); b = xpu.Buffer(4096); [s.fill(b, 1) for _ in range(9)]; s.synchronize()"
        finished = run([COMMAND, "record", "-f", "-o", recording, "--", PYTHON, "-c", code])
        self.assertEqual(finished.code, 0, finished)
        checked = run([COMMAND, "check", recording])
        self.assertEqual(checked.code, 0, checked)
        self.assertIn("OK: 9 commands, 0 lost, 0 pending, nothing unexplained", checked.stdout)

    def test_an_opencl_program_is_recorded(self):
        """The program finds its layer beside its library."""
        if shutil.which("clpeak") is None:
            self.skipTest("not installed: clpeak")
        recording = WORK / "clpeak.xpu"
        finished = run([COMMAND, "record", "-f", "-o", recording, "--", "clpeak", "--kernel-latency"], 300)
        self.assertEqual(finished.code, 0, finished)
        checked = run([COMMAND, "check", recording])
        self.assertEqual(checked.code, 0, checked)
        self.assertRegex(checked.stdout, r"OK: [0-9,]{5,} commands, 0 lost, 0 pending, nothing unexplained")

    # Building against it

    def test_a_project_finds_the_library(self):
        prefix = run([PYTHON, "-c", "import xpu; print(xpu.cmake_prefix())"]).stdout.strip()
        self.assertEqual(Path(prefix).resolve(), self.package.resolve())
        folder = WORK / "consumer"
        configure = ["cmake", "-S", ROOT / "tests" / "install" / "consumer", "-B", folder, "-G", "Ninja"]
        configure += [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF"]
        for command in (configure, ["cmake", "--build", folder]):
            finished = run(command, 120)
            self.assertEqual(finished.code, 0, finished)
        needed, _, _ = dynamic_section(folder / "consumer")
        self.assertIn("libxpu.so.0", needed)
        self.assertEqual(library_of(folder / "consumer"), self.library)
        finished = run([folder / "consumer"])
        self.assertEqual((finished.code, finished.stdout.splitlines()[0]), (0, f"xpu {self.metadata['Version']}"), finished)
        self.assertEqual(run([folder / "annotated"]).code, 0)

    # The package

    def test_the_package_passes_its_tests(self):
        for test in sorted(Path(__file__).parent.glob("*_test.py")):
            if test.name != Path(__file__).name:
                finished = run([PYTHON, test], 300)
                self.assertEqual(finished.code, 0, f"{test.name}: {finished}")

    def test_it_works_from_any_folder(self):
        folder = WORK / "target"
        finished = run([PYTHON, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", folder, self.wheel], 120)
        self.assertEqual(finished.code, 0, finished)
        finished = run([PYTHON, "-c", "import xpu; print(xpu.library_path(), xpu.device_count())"], PYTHONPATH=folder)
        self.assertEqual(finished.stdout.split(), [str(folder / "xpu" / "lib" / "libxpu.so.0"), "1"], finished)


class LockTest(unittest.TestCase):
    """Packages that cannot be had are a reason to skip; other packages than those that the lock file names are not."""

    def use(self, lock, **env):
        folder = WORK.parent / "lock_test"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        (folder / "requirements.txt").write_text(lock)
        script = 'root=$1 me=test log=$1/log; source "$2"; set -euo pipefail; use_environment "$1/environment" "$1/requirements.txt"; echo made'
        source = ROOT / "tools" / "python_environment.sh"
        return run(["bash", "-c", script, "bash", folder, source], 120, XPU_PYTHON=sys.executable, **env)

    def test_packages_that_cannot_be_had(self):
        lock = (ROOT / "tests" / "python" / "requirements.txt").read_text()
        finished = self.use(lock, PIP_NO_INDEX="1", PIP_FIND_LINKS="", PIP_CONFIG_FILE=os.devnull)
        self.assertEqual(finished.code, CANNOT_BE_HAD, finished)
        self.assertRegex(finished.stderr, r"^test: not all packages of requirements.txt can be had here. pip says: ERROR: No matching distribution")

    def test_another_package_than_the_locked_one(self):
        lock = (ROOT / "tests" / "python" / "requirements.txt").read_text()
        finished = self.use(re.sub(r"sha256:....", "sha256:0123", lock))
        if finished.code == CANNOT_BE_HAD:
            self.skipTest(finished.stderr.strip())
        self.assertEqual(finished.code, 1, finished)
        self.assertIn("test: a package is not the one that the lock file names", finished.stderr)


if __name__ == "__main__":
    support.main()
