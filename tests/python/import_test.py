"""What importing the package does, and does not."""

import ast
import importlib
import inspect
import re
import sys
import unittest
from pathlib import Path

import support
import xpu
from support import PackageTest

FACTS = """
import os, re, sys
def state():
    maps = open("/proc/self/maps").read()
    libraries = sorted({line.split("/")[-1] for line in maps.splitlines() if ".so" in line})
    return len(os.listdir("/proc/self/task")), libraries
threads, libraries = state()
"""


class ImportTest(PackageTest):
    def test_importing_starts_no_thread_and_opens_no_driver(self):
        code = FACTS + """
import xpu, xpu.profiler
more_threads, more_libraries = state()
new = [name for name in more_libraries if name not in libraries]
foreign = [name for name in new if re.search("OpenCL|ze_loader|libze|pocl|cuda|sycl", name)]
print(threads, more_threads, foreign, [name for name in new if "xpu" in name], xpu.is_initialized())
"""
        self.assert_prints(code, "1 1 [] ['libxpu.so.0'] False".replace("libxpu.so.0", real_name()))

    def test_importing_does_not_look_at_settings(self):
        self.assert_prints("import xpu; print(xpu.is_available())", "False", XPU_DRIVER="nonsense", XPU_VISIBLE_DEVICES="nonsense")

    def test_counting_and_properties_initialise_nothing(self):
        code = """
import os, xpu
xpu.device_count(); xpu.is_available(); xpu.get_device_properties(0); xpu.doctor()
assert not xpu.is_initialized()
child = os.fork()
if child == 0:
    xpu.init()
    os._exit(7 if xpu.is_initialized() else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        self.assert_prints(code, "7")

    def test_a_child_that_was_forked_too_late_gets_an_error(self):
        code = """
import os, xpu
xpu.init()
assert xpu.is_initialized()
child = os.fork()
if child == 0:
    try:
        xpu.synchronize()
    except xpu.UnavailableError as error:
        os._exit(7 if "forked" in str(error) and not xpu.is_initialized() else 8)
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
        self.assert_prints(code, "7")

    def test_under_xpu_record_importing_is_enough_and_harmless(self):
        recording = self.folder / "import.xpu"
        finished = support.run([xpu.program_path(), "record", "-f", "-o", recording, "--", sys.executable, "-c", "import xpu; print(41 + 1)"])
        self.assertEqual((finished.code, finished.stdout.strip()), (0, "42"), finished)

    def test_version_is_that_of_the_library_and_of_the_program(self):
        self.assertRegex(xpu.__version__, r"^\d+\.\d+\.\d+$")
        finished = support.run([xpu.program_path(), "--version"])
        self.assertEqual((finished.code, finished.stdout.split()[-1]), (0, xpu.__version__), finished)

    def test_every_public_name_is_there(self):
        self.assertEqual([name for name in xpu.__all__ if not hasattr(xpu, name)], [])
        self.assertEqual(xpu.__all__, sorted(xpu.__all__, key=lambda name: (name[0].islower(), name)))
        public = {name for name, value in vars(xpu).items() if not name.startswith("_") and not inspect.ismodule(value)}
        self.assertEqual(public - set(xpu.__all__), set())

    def test_where_the_files_are(self):
        for path in (xpu.library_path(), xpu.program_path(), Path(xpu.include_dir()) / "xpu" / "xpu.hpp"):
            self.assertTrue(Path(path).is_file(), path)
        self.assertTrue((Path(xpu.cmake_prefix()) / "lib" / "cmake" / "xpu" / "xpuConfig.cmake").is_file())

    def test_python_minus_m_executes_the_program(self):
        finished = support.run([sys.executable, "-m", "xpu", "no-such-command"])
        direct = support.run([xpu.program_path(), "no-such-command"])
        self.assertNotEqual(direct.code, 0)
        self.assertEqual((finished.code, finished.stdout, finished.stderr), (direct.code, direct.stdout, direct.stderr))


class StubTest(unittest.TestCase):
    """The stub of the binary module says what the module has, and the package is marked as typed."""

    def setUp(self):
        self.core = importlib.import_module("xpu._core")
        self.package = Path(xpu.__file__).parent
        self.tree = ast.parse((self.package / "_core.pyi").read_text())

    def declared(self, body):
        functions = {node.name for node in body if isinstance(node, ast.FunctionDef)}
        return functions | {node.target.id for node in body if isinstance(node, ast.AnnAssign)}

    def test_functions(self):
        declared = self.declared(self.tree.body)
        there = {name for name, value in vars(self.core).items() if not name.startswith("_") and not inspect.isclass(value)}
        self.assertEqual(declared, there)

    def test_classes_and_their_members(self):
        classes = {node.name: node for node in self.tree.body if isinstance(node, ast.ClassDef)}
        there = {name: value for name, value in vars(self.core).items() if inspect.isclass(value)}
        self.assertEqual({name for name in classes if not name.startswith("_")}, set(there))
        for name, kind in there.items():
            declared = self.declared(classes[name].body)
            for base in classes[name].bases:
                declared |= self.declared(classes[base.id].body)
            members = {member for member in vars(kind) if not member.startswith("_")}
            self.assertEqual({member for member in declared if not member.startswith("_")}, members, name)

    def test_signatures_have_the_names_and_defaults_of_the_binary(self):
        for node in self.tree.body:
            if not isinstance(node, ast.FunctionDef):
                continue
            text = (getattr(self.core, node.name).__doc__ or "").splitlines()[0]
            names = re.findall(r"(\w+):", text.split(" -> ")[0])
            self.assertEqual([argument.arg for argument in node.args.args], names, text)

    def test_typed(self):
        self.assertTrue((self.package / "py.typed").is_file())
        for file in sorted(self.package.glob("*.py")):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.FunctionDef):
                    self.assertIsNotNone(node.returns, f"{file.name}: {node.name} has no type")


def real_name():
    """How the library's file is called: in a build tree it has the whole version."""
    return Path(xpu.library_path()).resolve().name


if __name__ == "__main__":
    support.main()
