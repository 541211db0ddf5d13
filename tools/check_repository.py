#!/usr/bin/env python3
"""The static checks that need no build: format, scripts, spelling, and rules about files that no other tool knows.

    tools/check_repository.py               every check; tools that are not installed are named and skipped
    tools/check_repository.py --self-test   proves with a small tree that each rule about files can fail
"""

import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

CPP_SUFFIXES = {".h", ".hpp", ".c", ".cpp"}
TEXT_SUFFIXES = CPP_SUFFIXES | {".py", ".sh", ".md", ".txt", ".cmake", ".json", ".in", ".map", ".inc", ".cl", ".mjs", ".yml", ""}
LONG_FILE_LINES = 500
README_MAX_LINES = 20
BUDGET_MINUTES = 60

# Written so that no pattern matches its own text.
FORBIDDEN_TEXT = [
    (re.compile(r"(?<![\w.$}])/(?:home|root|work)/\w"), "a path of one machine"),
    (re.compile(r"\b(?:TO[D]O|FIX[M]E|XX[X])\b"), "unfinished work belongs in the issue tracker"),
    (re.compile(r"-march=nativ[e]"), "what we build runs on other machines than the one that built it"),
    (re.compile(r"(?<!\|)\| *grep -[a-zA-Z]*q"), "grep -q ends at its first match, and under pipefail what writes to it then fails now and then"),
]
# Typed on purpose by a test of the command line; spelled so in traces of PyTorch.
CODESPELL_IGNORE = "reprot,opration"


class Repository:
    """The files of a tree, by path relative to its root: what git knows and does not ignore, or everything where there is no git."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        listing = subprocess.run(
            ["git", "-C", self.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], capture_output=True, text=True, check=False
        )
        if listing.returncode == 0 and (self.root / ".git").exists():
            names = [name for name in listing.stdout.split("\0") if name]
        else:
            names = [str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file() and "build" not in path.parts]
        self.paths = sorted(pathlib.Path(name) for name in names if (self.root / name).is_file())

    def text(self, path):
        return (self.root / path).read_text(encoding="utf-8")

    def text_files(self):
        return [path for path in self.paths if path.suffix in TEXT_SUFFIXES and path.name != "LICENSE" and "corpus" not in path.parts]

    def cpp_files(self):
        return [path for path in self.paths if path.suffix in CPP_SUFFIXES]

    def shell_files(self):
        return [path for path in self.paths if path.suffix == ".sh" or (path.suffix == "" and self.starts_with_shell_shebang(path))]

    def python_files(self):
        return [path for path in self.paths if path.suffix == ".py"]

    def starts_with_shell_shebang(self, path):
        with open(self.root / path, "rb") as file:
            return re.match(rb"#!.*\b(ba)?sh\b", file.readline()) is not None


def check_text(repository):
    """Forbidden text, white space, ends of lines."""
    problems = []
    for path in repository.text_files():
        try:
            text = repository.text(path)
        except UnicodeDecodeError as error:
            problems.append(f"{path}: not UTF-8 ({error.reason} at byte {error.start})")
            continue
        if text and not text.endswith("\n"):
            problems.append(f"{path}: no newline at the end")
        for number, line in enumerate(text.split("\n"), 1):
            if line != line.rstrip():
                problems.append(f"{path}:{number}: white space at the end of the line")
            for pattern, reason in FORBIDDEN_TEXT:
                match = pattern.search(line)
                if match:
                    problems.append(f"{path}:{number}: '{match.group(0)}': {reason}")
    return problems


def check_readmes(repository):
    """A folder of src/ that is a layer says in a README of at most 20 lines what it is."""
    problems = []
    for path in repository.paths:
        if path.parts[0] != "src" or path.name != "CMakeLists.txt" or not re.search(r"\b(xpu_library|pybind11_add_module)\(", repository.text(path)):
            continue
        folder = path.parent
        if folder / "README.md" not in repository.paths:
            problems.append(f"{folder}: no README.md")
    for path in repository.paths:
        if path.parts[0] == "src" and path.name == "README.md":
            lines = len(repository.text(path).splitlines())
            if lines > README_MAX_LINES:
                problems.append(f"{path}: {lines} lines, at most {README_MAX_LINES} are allowed")
    return problems


def check_packages(repository):
    """packages.txt has one package a line, and each has its row in docs/dependencies.md."""
    if pathlib.Path("packages.txt") not in repository.paths:
        return []
    problems = []
    dependencies = pathlib.Path("docs/dependencies.md")
    documented = set(re.findall(r"`([a-z0-9][a-z0-9+.-]*)`", repository.text(dependencies))) if dependencies in repository.paths else set()
    for number, line in enumerate(repository.text(pathlib.Path("packages.txt")).splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if not re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", line):
            problems.append(f"packages.txt:{number}: '{line}' is not the name of one Debian package")
        elif line not in documented:
            problems.append(f"packages.txt:{number}: {line} has no row in docs/dependencies.md")
    return problems


def check_budgets(repository):
    """The table in CONTRIBUTING.md says what tools/run_tests.sh has, and the sum is within what we allow ourselves."""
    script, table = pathlib.Path("tools/run_tests.sh"), pathlib.Path("CONTRIBUTING.md")
    if script not in repository.paths or table not in repository.paths:
        return []
    stages = {name: int(seconds) for name, seconds in re.findall(r"\[(\w+)\]=(\d+)", repository.text(script))}
    rows = {name: float(minutes) for name, minutes in re.findall(r"^\| `(\w+)` \|.*\| ([\d.]+) \|$", repository.text(table), re.MULTILINE)}
    problems = [f"{table}: stage {name} has {seconds / 60:g} minutes in {script}" for name, seconds in stages.items() if rows.get(name) != seconds / 60]
    problems += [f"{table}: {script} has no stage {name}" for name in rows if name not in stages]
    if sum(stages.values()) > BUDGET_MINUTES * 60:
        problems.append(f"{script}: the budgets sum up to {sum(stages.values()) / 60:g} minutes, at most {BUDGET_MINUTES} are allowed")
    return problems


def check_records(repository):
    """The table of wire records in docs/formats.md has the kinds and sizes that the header freezes, and says of the rest that they are reserved."""
    header, document = pathlib.Path("include/xpu/trace/records.hpp"), pathlib.Path("docs/formats.md")
    if header not in repository.paths or document not in repository.paths:
        return []
    source, text = repository.text(header), repository.text(document)
    kinds_text = re.search(r"enum class RecordKind[^{]*\{(.*?)\}", source, re.DOTALL)
    kinds = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+),", kinds_text.group(1))} if kinds_text else {}
    sizes = {
        re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower(): int(size)
        for name, size in re.findall(r"static_assert\(sizeof\((\w+)Record\) == (\d+)\)", source)
    }
    rows = {name: (int(kind), int(size)) for kind, name, size in re.findall(r"^\| (\d+) \| (\w+) \| (\d+)[ |]", text, re.MULTILINE)}
    reserved = re.search(r"^Reserved and not written yet: (.*)\.$", text, re.MULTILINE)
    reserved_kinds = {int(number) for number in re.findall(r"\d+", reserved.group(1))} if reserved else set()

    problems = []
    for name, kind in kinds.items():
        expected = (kind, sizes[name]) if name in sizes else None
        if expected is None and kind not in reserved_kinds:
            problems.append(f"{document}: kind {kind} ({name}) has no structure in {header} and is not named as reserved")
        elif rows.get(name) != expected:
            problems.append(f"{document}: record {name} should have kind and bytes {expected}, the table has {rows.get(name)}")
    problems += [f"{document}: {header} has no record {name}" for name in rows if name not in kinds]
    return problems


def check_python(repository):
    """Every script is accepted by the Python compiler; nothing is run and no cache is written."""
    problems = []
    for path in repository.python_files():
        try:
            compile(repository.text(path), str(path), "exec", dont_inherit=True)
        except SyntaxError as error:
            problems.append(f"{path}:{error.lineno}: {error.msg}")
    return problems


def run_tool(repository, command, files):
    """The complaints of a command-line tool about these files, None where it is not installed."""
    if shutil.which(command[0]) is None:
        return None
    if not files:
        return []
    result = subprocess.run([*command, *map(str, files)], cwd=repository.root, capture_output=True, text=True, check=False)
    if result.returncode == 0:
        return []
    return (result.stdout + result.stderr).splitlines() or [f"{command[0]} failed with {result.returncode}"]


def check_format(repository):
    complaints = run_tool(repository, ["clang-format-19", "--dry-run", "--Werror"], repository.cpp_files())
    if complaints is None:
        return None
    lines_by_file = collections.Counter(line.split(":")[0] for line in complaints if "[-Wclang-format-violations]" in line)
    if not lines_by_file:
        return complaints
    return [f"{path}: {count} places (make format)" for path, count in sorted(lines_by_file.items())]


def check_shell(repository):
    return run_tool(repository, ["shellcheck", "--external-sources"], repository.shell_files())


def check_spelling(repository):
    return run_tool(repository, ["codespell", f"--ignore-words-list={CODESPELL_IGNORE}"], repository.text_files())


FILE_CHECKS = {
    "text": check_text,
    "readmes": check_readmes,
    "packages": check_packages,
    "budgets": check_budgets,
    "records": check_records,
    "python": check_python,
}
TOOL_CHECKS = {"format": check_format, "shell": check_shell, "spelling": check_spelling}


def report_long_files(repository):
    """Not a failure: a long file may be right, but someone should have thought about it."""
    for path in repository.text_files():
        lines = repository.text(path).count("\n")
        if lines > LONG_FILE_LINES:
            print(f"note: {path} has {lines} lines")


def run_all(repository):
    failed = False
    for name, check in {**FILE_CHECKS, **TOOL_CHECKS}.items():
        problems = check(repository)
        if problems is None:
            print(f"{name}: skipped, its tool is not installed")
            continue
        print(f"{name}: {'ok' if not problems else 'FAILED'}")
        for problem in problems:
            print(f"  {problem}")
        failed = failed or bool(problems)
    report_long_files(repository)
    return not failed


def self_test():
    cases = {
        "text": [
            {"a/b.cpp": "int x;  \n"},
            {"a/b.cpp": "int x;"},
            {"a/b.md": "see /ho" + "me/someone/file\n"},
            {"a/b.cpp": "// TO" + "DO later\n"},
            {"CMakeLists.txt": "add_compile_options(-march=" + "native)\n"},
            {"tools/a.sh": "ls | gr" + "ep -q a\n"},
        ],
        "readmes": [
            {"src/trace/CMakeLists.txt": "xpu_library(trace)\n"},
            {"src/python/CMakeLists.txt": "pybind11_add_module(core)\n"},
            {"src/base/README.md": "line\n" * (README_MAX_LINES + 1)},
        ],
        "packages": [{"packages.txt": "two names\n"}, {"packages.txt": "undocumented\n"}],
        "budgets": [
            {"CONTRIBUTING.md": "| `dev` | builds | 8 |\n"},
            {"CONTRIBUTING.md": "| `dev` | builds | 7 |\n| `asan` | builds | 1 |\n"},
            {"CONTRIBUTING.md": "| `dev` | builds | 61 |\n", "tools/run_tests.sh": "budget_s=([dev]=3660)\n"},
        ],
        "records": [
            {"docs/formats.md": "| 1 | string | 24 + n | text |\n"},
            {"docs/formats.md": "| 2 | string | 16 + n | text |\n"},
            {"docs/formats.md": ""},
            {"docs/formats.md": "| 1 | string | 16 + n | text |\n| 3 | thread | 24 | more |\n"},
            {"include/xpu/trace/records.hpp": "enum class RecordKind {\n  string = 1,\n};\n"},
        ],
        "python": [{"a/b.py": "def broken(:\n"}],
    }
    good = {
        "src/base/CMakeLists.txt": "xpu_library(base)\n",
        "src/base/README.md": "base\n",
        "packages.txt": "# a comment\n\ncmake\n",
        "docs/dependencies.md": "| `cmake` | builds |\n",
        "tools/a.py": "print(1)\n",
        "tools/run_tests.sh": "budget_s=([dev]=420)\n",
        "CONTRIBUTING.md": "| `dev` | builds | 7 |\n",
        "include/xpu/trace/records.hpp": "enum class RecordKind {\n  string = 1,\n};\nstatic_assert(sizeof(StringRecord) == 16);\n",
        "docs/formats.md": "| 1 | string | 16 + n | text |\n",
    }

    def problems_of(name, files):
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                (pathlib.Path(folder) / path).parent.mkdir(parents=True, exist_ok=True)
                (pathlib.Path(folder) / path).write_text(text, encoding="utf-8")
            return FILE_CHECKS[name](Repository(folder))

    for name in FILE_CHECKS:
        if problems_of(name, good):
            sys.exit(f"check_repository: self-test: {name} refuses good files: {problems_of(name, good)}")
        for bad in cases[name]:
            if not problems_of(name, {**good, **bad}):
                sys.exit(f"check_repository: self-test: {name} accepts {bad}")
    print("check_repository: self-test ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    elif not run_all(Repository(pathlib.Path(__file__).resolve().parent.parent)):
        sys.exit(1)


if __name__ == "__main__":
    main()
