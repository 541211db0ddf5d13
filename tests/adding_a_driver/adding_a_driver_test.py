#!/usr/bin/env python3
"""Does what docs/adding_a_driver.md says: its files, put into a copy of the tree, are a driver that builds and passes the conformance suite.

    adding_a_driver_test.py SOURCE_FOLDER WORK_FOLDER C_COMPILER CPP_COMPILER

The copy consists of links to the files of SOURCE_FOLDER, so that nothing but the new files is in it that is not in the tree.
"""

import pathlib
import re
import shutil
import subprocess
import sys

PAGE = "docs/adding_a_driver.md"
DRIVER = "minimal"
# A file's name on a line of its own, and the block that is its content.
FILE_BLOCK = re.compile(r"^`([^`\s]+)`\n\n```[a-z]+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_BLOCK = re.compile(r"^```[a-z]+$", re.MULTILINE)
MAX_CODE_LINES = 450


def files_of_page(text):
    files = dict(FILE_BLOCK.findall(text))
    block_count = len(ANY_BLOCK.findall(text))
    if len(files) != block_count:
        sys.exit(f"{PAGE} has {block_count} blocks, but {len(files)} of them have a file name of their own before them")
    for name in files:
        if not name.startswith((f"src/drivers/{DRIVER}/", "tests/conformance/expectations/")):
            sys.exit(f"{PAGE} has a block for {name}, but a new driver touches only its own folder and its expectations")
    line_count = sum(content.count("\n") for name, content in files.items() if name.startswith("src/"))
    if line_count > MAX_CODE_LINES:
        sys.exit(f"the driver of {PAGE} has {line_count} lines, a first driver should have at most {MAX_CODE_LINES}")
    return files


def link_tree(source, copy, folders_with_new_files):
    """Links to everything in `source`; a folder is a real one where something new lies in or below it."""
    copy.mkdir()
    for entry in source.iterdir():
        if entry.name == "build" or entry.name.startswith(".git"):
            continue
        if entry.is_dir() and any(folder.is_relative_to(entry) for folder in folders_with_new_files):
            link_tree(entry, copy / entry.name, folders_with_new_files)
        else:
            (copy / entry.name).symlink_to(entry)


def make_tree(source, copy, files):
    # Of a folder that is new itself, those above it.
    folders = {next(parent for parent in (source / name).parents if parent.is_dir()) for name in files}
    link_tree(source, copy, folders)
    for name, content in files.items():
        path = copy / name
        if path.exists():
            sys.exit(f"{PAGE} makes {name}, which is in the tree already")
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")


def run(*command, timeout_s):
    print("+", *command, flush=True)
    subprocess.run(command, check=True, timeout=timeout_s)


def main():
    source, work, c_compiler, cpp_compiler = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]), sys.argv[3], sys.argv[4]
    files = files_of_page((source / PAGE).read_text(encoding="utf-8"))
    if work.exists():
        shutil.rmtree(work)
    work.parent.mkdir(parents=True, exist_ok=True)
    make_tree(source, work, files)

    build = work / "build" / DRIVER
    run(
        *("cmake", "-S", work, "-B", build, "-G", "Ninja", f"-DCMAKE_C_COMPILER={c_compiler}", f"-DCMAKE_CXX_COMPILER={cpp_compiler}"),
        *(f"-DXPU_BUILD_DRIVERS={DRIVER}", "-DXPU_WERROR=ON", "-DXPU_BUILD_BENCH=OFF"),
        # As few compilations as possible, and quick ones: what is tested here is the page.
        *("-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O0", "-DCMAKE_UNITY_BUILD=ON"),
        timeout_s=200,
    )
    run("cmake", "--build", build, "--target", "conformance", timeout_s=600)
    result = subprocess.run(
        [build / "bin" / "conformance", f"--gtest_filter=*/{DRIVER}"], stdout=subprocess.PIPE, text=True, check=False, timeout=200
    )
    counts = re.search(rf"^{DRIVER}: (\d+) run, (\d+) passed", result.stdout, re.MULTILINE)
    if result.returncode != 0 or counts is None or int(counts.group(2)) == 0:
        print(result.stdout)
        sys.exit(f"the driver of {PAGE} does not pass the conformance suite (exit code {result.returncode})")
    print(counts.group(0))


if __name__ == "__main__":
    main()
