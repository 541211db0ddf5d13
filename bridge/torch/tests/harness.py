"""What the tests of the PyTorch bridge share. Import it before torch: it chooses the devices that torch is to see.

The tests look at the bridge from outside: a plain `import torch` has the device "xpu", and nothing else of ours is imported. What needs a process of its
own runs in a session of its own with a hard time limit; at the limit its whole process group is killed.
"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

TESTS = Path(__file__).resolve().parent
# What a test decides for itself, whatever the caller has set.
OURS = ("XPU_", "TORCH_DEVICE_BACKEND_AUTOLOAD", "PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
DEVICES = {"XPU_DRIVER": "host", "XPU_HOST_DEVICES": "2"}
PATIENCE_S = 120

_executor = os.environ.get("XPU_TEST_EXECUTOR")  # adaptive or pool: every test is run with both
for _name in [name for name in os.environ if name.startswith(OURS)]:
    del os.environ[_name]
os.environ.update(DEVICES)
if _executor:
    os.environ["XPU_HOST_EXECUTOR"] = _executor


class Finished:
    """How a program ended: exit code (negative: -signal), output as text, seconds, whether it was killed at its limit."""

    def __init__(self, code, stdout, stderr, seconds, timed_out):
        self.code, self.stdout, self.stderr, self.seconds, self.timed_out = code, stdout, stderr, seconds, timed_out

    def __repr__(self):
        ending = "killed at its time limit" if self.timed_out else f"exit {self.code}"
        return f"{ending}, {self.seconds:.1f} s\nstdout: {self.stdout[-3000:]}\nstderr: {self.stderr[-3000:]}"


def environment(**extra):
    """The environment of a child: ours, changed by `extra`; a value of None removes a variable."""
    env = dict(os.environ)
    for name, value in extra.items():
        if value is None:
            env.pop(name, None)
        else:
            env[name] = str(value)
    return env


def start(command, env=None, **more):
    """Starts a program that leads a process group; hand it to `kill_group` when it must end."""
    more.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen([str(part) for part in command], env=env or environment(), start_new_session=True, **more)


def kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def run(command, timeout_s=PATIENCE_S, env=None, **more):
    started = time.monotonic()
    process = start(command, env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
    timed_out = False
    try:
        stdout, stderr = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        timed_out = True
        kill_group(process)
        stdout, stderr = process.communicate()
    kill_group(process)  # whatever it left behind
    return Finished(process.returncode, stdout, stderr, time.monotonic() - started, timed_out)


def run_python(source, timeout_s=PATIENCE_S, arguments=(), cwd=None, **variables):
    """Runs Python source in a fresh process, as a file so that spawned children find its functions. `variables` change its environment."""
    with tempfile.TemporaryDirectory(prefix="xpu_torch_test_") as folder:
        script = Path(folder) / "script.py"
        script.write_text(source)
        return run([sys.executable, script, *arguments], timeout_s, environment(**variables), cwd=cwd or folder)


# Imports what `prelude` says once and runs each case in a fork of that, which ends as a program does. Good as long as the prelude starts no thread.
_FORKING = """
import json, os, sys
with open(sys.argv[1]) as file:
    _prelude, _cases = json.load(file)
exec(compile(_prelude, "prelude", "exec"))
for _name, _source in _cases.items():
    _child = os.fork()
    if _child == 0:
        os.dup2(os.open(_name + ".stdout", os.O_CREAT | os.O_WRONLY, 0o600), 1)
        os.dup2(os.open(_name + ".stderr", os.O_CREAT | os.O_WRONLY, 0o600), 2)
        exec(compile(_source, "case", "exec"))
        sys.exit()
    _, _status = os.waitpid(_child, 0)
    with open(_name + ".code", "w") as file:
        file.write(str(os.waitstatus_to_exitcode(_status)))
"""


def run_forked(prelude, cases, timeout_s=PATIENCE_S, **variables):
    """Runs every source of `cases` (name -> source) in a process of its own behind `prelude`; name -> Finished."""
    with tempfile.TemporaryDirectory(prefix="xpu_torch_test_") as folder:
        folder = Path(folder)
        (folder / "forking.py").write_text(_FORKING)
        (folder / "cases.json").write_text(json.dumps([prelude, {str(index): source for index, source in enumerate(cases.values())}]))
        whole = run([sys.executable, folder / "forking.py", "cases.json"], timeout_s, environment(**variables), cwd=folder)

        def read(index, what):
            path = folder / f"{index}.{what}"
            return path.read_text() if path.exists() else None

        results = {}
        for index, name in enumerate(cases):
            code = read(index, "code")
            stderr = read(index, "stderr")
            if code is None:
                stderr = f"did not end: {whole}" if stderr is None else f"{stderr}\n(killed at the time limit of all cases)"
            results[name] = Finished(None if code is None else int(code), read(index, "stdout") or "", stderr, whole.seconds, code is None)
        return results


class ProcessTest(unittest.TestCase):
    """A test that runs programs."""

    def assert_prints(self, finished, expected):
        """The program ended well, printed exactly `expected` (lines) and no word on stderr."""
        self.assertEqual(finished.code, 0, finished)
        self.assertEqual(finished.stderr, "", finished)
        self.assertEqual(finished.stdout.splitlines(), expected.splitlines(), finished)

    def assert_python_prints(self, source, expected, **more):
        self.assert_prints(run_python(source, **more), expected)
