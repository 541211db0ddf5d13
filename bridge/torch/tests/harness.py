"""What the tests of the PyTorch bridge share. Import it before torch: it chooses the devices that torch is to see.

The tests look at the bridge from outside: a plain `import torch` has the device "xpu", and nothing else of ours is imported. What needs a process of its
own runs in a session of its own with a hard time limit; at the limit its whole process group is killed.
"""
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

for _name in [name for name in os.environ if name.startswith(OURS)]:
    del os.environ[_name]
os.environ.update(DEVICES)


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


class ProcessTest(unittest.TestCase):
    """A test that runs programs."""

    def assert_prints(self, finished, expected):
        """The program ended well, printed exactly `expected` (lines) and no word on stderr."""
        self.assertEqual(finished.code, 0, finished)
        self.assertEqual(finished.stderr, "", finished)
        self.assertEqual(finished.stdout.splitlines(), expected.splitlines(), finished)

    def assert_python_prints(self, source, expected, **more):
        self.assert_prints(run_python(source, **more), expected)
