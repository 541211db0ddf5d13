#!/usr/bin/env python3
"""Proves that the acceptance tests can fail: builds the library with a bug put in and expects the tests of one row to find it.

    tools/mutate.py ROW...                  the bugs of tests/mutations/ROW.patch, one after the other
    tools/mutate.py --all
    tools/mutate.py --draw N [--seed TEXT]  N rows, drawn by the seed: by default the commit, or the contents where there is no git
    tools/mutate.py --list                  the rows, with what each bug is

A patch begins with a comment that says what the bug is, and may have a line "environment: sim" (the default is host) and a line
"tests: PROGRAM FILTER" (the default is the program acceptance and the tests that are named after the row), or "gate: TEST PROGRAM" for
the CTest entry of a gate and the program that it runs. It is applied to a copy of the tree in build/mutants, which has build folders of
its own, of which that for gates is optimised. Before that the tests of the row must pass without the bug, so that a broken environment
is not taken for a bug that was found. Found is: the tests fail, crash or take too long. Everything else is an error: a patch that does
not apply, a library that does not build, tests that pass.
"""

import argparse
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PATCHES = ROOT / "tests" / "mutations"
WORK = ROOT / "build" / "mutants"
TREE = WORK / "tree"
BUILD_LIMIT_S = 1200
TEST_LIMIT_S = 200
GATE_LIMIT_S = 400  # above CTest's own
SETTINGS = ("environment: ", "tests: ", "gate: ")
ENVIRONMENTS = {
    "host": {"XPU_DRIVER": "host", "XPU_HOST_DEVICES": "2"},
    "sim": {"XPU_DRIVER": "sim", "XPU_SIM_PROGRAM": str(ROOT / "tests" / "acceptance" / "two_devices.sim")},
}


class Build:
    """A build folder of the copy. Gates count instructions, which says nothing about code that is not optimised."""

    def __init__(self, folder, *options):
        self.folder = WORK / folder
        self.options = options


TESTS = Build("build", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_FLAGS_DEBUG=-O0", "-DXPU_BUILD_BENCH=OFF")
GATES = Build("build_gates", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -DNDEBUG", "-DXPU_BUILD_BENCH=ON")


class Mutation:
    def __init__(self, path):
        self.path = path
        self.row = path.stem
        lines = path.read_text(encoding="utf-8").splitlines()
        self.files = [line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/")]
        comment = [line[2:].strip() for line in lines if line.startswith("# ")]
        settings = {name: value for name, value in (line.split(": ", 1) for line in comment if line.startswith(SETTINGS))}
        self.bug = " ".join(line for line in comment if not line.startswith(SETTINGS))
        self.environment = settings.get("environment", "host")
        self.build = GATES if "gate" in settings else TESTS
        if self.build is GATES:
            self.gate, self.program = settings["gate"].split(" ", 1)
        else:
            self.program, self.filter = settings.get("tests", f"acceptance *{self.row}_*").split(" ", 1)
        if not self.bug:
            sys.exit(f"mutate: {path}: its first lines must say what the bug is, after '# '")
        if self.environment not in ENVIRONMENTS:
            sys.exit(f"mutate: {path}: environment '{self.environment}', it must be one of {', '.join(ENVIRONMENTS)}")


def known_mutations():
    def order(path):
        return re.sub(r"\d+", lambda number: number.group().zfill(4), path.stem)

    return {path.stem: Mutation(path) for path in sorted(PATCHES.glob("*.patch"), key=order)}


def environment(**more):
    """Ours without what would change the tests."""
    result = {name: value for name, value in os.environ.items() if not name.startswith("XPU_") and name != "OPENCL_LAYERS"}
    result.update(CCACHE_BASEDIR=str(WORK), CCACHE_NOHASHDIR="1", **more)
    return result


def run(command, limit_s, env=None, cwd=WORK):
    """Exit code (negative: a signal, None: the limit) and output. The program's whole group ends with it."""
    process = subprocess.Popen(
        [str(part) for part in command],
        cwd=cwd,
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=limit_s)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        return None, output


def files_of_the_project():
    listing = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=False
    )
    if listing.returncode == 0:
        names = [name for name in listing.stdout.split("\0") if name]
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file() and path.relative_to(ROOT).parts[0] != "build"]
    return sorted(name for name in names if (ROOT / name).is_file())


def refresh_tree():
    """Makes the copy equal to the project; files that are equal keep their time, so that only what differs is built again."""
    names = set(files_of_the_project())
    for name in names:
        source, copy = ROOT / name, TREE / name
        contents = source.read_bytes()
        if copy.is_file() and copy.read_bytes() == contents:
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(contents)
        shutil.copymode(source, copy)
    for path in sorted(TREE.rglob("*")):
        if path.is_file() and str(path.relative_to(TREE)) not in names:
            path.unlink()


def build(mutations):
    """None, or the end of what the compiler said."""
    for kind in (TESTS, GATES):
        programs = {mutation.program for mutation in mutations if mutation.build is kind}
        if not programs:
            continue
        commands = [["cmake", "--build", kind.folder, "--parallel", str(os.cpu_count()), "--target", *sorted(programs)]]
        if not (kind.folder / "build.ninja").is_file():
            commands.insert(
                0,
                ["cmake", "-S", TREE, "-B", kind.folder, "-G", "Ninja", "-DCMAKE_UNITY_BUILD=ON"]
                + ["-DXPU_BUILD_TESTS=ON", "-DXPU_BUILD_INTERCEPTORS=OFF", *kind.options],
            )
        for command in commands:
            code, output = run(command, BUILD_LIMIT_S)
            if code != 0:
                return output[-4000:]
    return None


def run_row(mutation):
    """Exit code (None: the limit) and output of the row's tests."""
    env = environment(XPU_CACHE_DIR=str(WORK / "kernel_cache"), **ENVIRONMENTS[mutation.environment])
    if mutation.build is GATES:
        command = ["ctest", "--test-dir", GATES.folder, "--tests-regex", f"^{mutation.gate}$", "--no-tests=error", "--output-on-failure"]
        return run(command, GATE_LIMIT_S, env)
    program = TESTS.folder / "bin" / mutation.program
    return run([program, f"--gtest_filter={mutation.filter}", "--gtest_fail_fast", "--gtest_brief=1"], TEST_LIMIT_S, env)


def count_passed(output):
    # The last one: tests show what processes of their own said, too.
    counts = re.findall(r"^\[  PASSED  \] (\d+) test", output, re.MULTILINE)
    # A gate that was skipped did not pass, for all that CTest ends with 0.
    return int(counts[-1]) if counts else len(re.findall(r"^ *\d+/\d+ Test .* Passed ", output, re.MULTILINE))


def try_bug(mutation):
    """None when the row's tests find the bug that is in the tree now, else the reason why this is an error."""
    failure = build([mutation])
    if failure is not None:
        return f"the library with the bug does not build:\n{failure}"
    code, output = run_row(mutation)
    if code == 0:
        return f"the tests of {mutation.row} pass with the bug: {mutation.bug}"
    found_by = re.findall(r"^\[  FAILED  \] ([^ ,\n]+[._][^ ,\n]+)", output, re.MULTILINE)
    if mutation.build is GATES:
        found_by = [mutation.gate]
    how = f"{found_by[-1]} fails" if found_by else "the tests take too long" if code is None else f"the tests end with {code}"
    print(f"{mutation.row}: found, {how}", flush=True)
    return None


def check(mutation):
    """The same with the bug put in and taken out again."""
    foreign = [name for name in mutation.files if not name.startswith(("src/", "include/"))]
    if foreign:
        return f"{mutation.path.name} changes {foreign[0]}, it may change src/ and include/ only"
    before = {name: (TREE / name).read_bytes() for name in mutation.files if (TREE / name).is_file()}
    # The copy is no repository, whatever folder it lies in.
    apart = environment(GIT_CEILING_DIRECTORIES=str(WORK), GIT_DIR=str(WORK / "none"))
    code, output = run(["git", "apply", "-C1", "--whitespace=nowarn", mutation.path], 60, apart, TREE)
    try:
        return f"{mutation.path.name} does not apply:\n{output}" if code != 0 else try_bug(mutation)
    finally:
        for name, contents in before.items():
            (TREE / name).write_bytes(contents)


def check_all(mutations):
    WORK.mkdir(parents=True, exist_ok=True)
    refresh_tree()
    failure = build(mutations)
    if failure is not None:
        sys.exit(f"mutate: the project does not build without a bug:\n{failure}")
    for mutation in mutations:
        code, output = run_row(mutation)
        if code != 0 or count_passed(output) == 0:
            sys.exit(f"mutate: the tests of {mutation.row} do not pass without a bug (exit code {code}):\n{output[-4000:]}")
    failed = 0
    for mutation in mutations:
        begin = time.monotonic()
        problem = check(mutation)
        if problem is not None:
            failed += 1
            print(f"{mutation.row}: NOT FOUND: {problem}", flush=True)
        print(f"{mutation.row}: {time.monotonic() - begin:.0f} s", flush=True)
    print(f"{len(mutations) - failed} of {len(mutations)} bugs were found")
    return failed == 0


def default_seed():
    head = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    if head.returncode == 0:
        return head.stdout.strip()
    digest = hashlib.sha256()
    for name in files_of_the_project():
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def main():
    mutations = known_mutations()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help="of " + ", ".join(mutations))
    parser.add_argument("--all", action="store_true", help="every row")
    parser.add_argument("--draw", type=int, metavar="N", help="this many rows, drawn by the seed")
    parser.add_argument("--seed", metavar="TEXT", help="for --draw")
    parser.add_argument("--list", action="store_true", help="print the rows and end")
    arguments = parser.parse_args()

    if arguments.list:
        for mutation in mutations.values():
            print(f"{mutation.row:3} {mutation.environment:4} {mutation.bug}")
        return
    unknown = [row for row in arguments.rows if row not in mutations]
    if unknown:
        parser.error(f"there is no row {unknown[0]}, there are {', '.join(mutations)}")
    if arguments.all:
        chosen = list(mutations)
    elif arguments.draw is not None:
        seed = arguments.seed or default_seed()
        chosen = sorted(random.Random(seed).sample(list(mutations), min(arguments.draw, len(mutations))))
        print(f"drawn by {seed}: {', '.join(chosen)}", flush=True)
    else:
        chosen = arguments.rows
    if not chosen:
        parser.error("name a row, or --all, --draw or --list")
    if not check_all([mutations[row] for row in chosen]):
        sys.exit(1)


if __name__ == "__main__":
    main()
