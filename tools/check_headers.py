#!/usr/bin/env python3
"""Compiles every header of include/ and src/ alone: whoever includes one need not know what to include before it.

    tools/check_headers.py [COMPILER]    default g++; headers with the suffix .h are compiled as C11 and as C++20
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import sysconfig

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY", f"-I{ROOT}/include", f"-I{ROOT}/src"]

# What the layer python needs beside that.
PYTHON_FLAGS = ["-isystem", sysconfig.get_path("include")]


def complaints(compiler, header, language):
    include_root = ROOT / header.parts[0]
    text = f'#include "{(ROOT / header).relative_to(include_root)}"\n'
    standard = {"c": "-std=c11", "c++": "-std=c++20"}[language]
    command = [compiler, standard, *FLAGS, *flags_of(header), "-x", language, "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return [f"{header} does not stand alone in {language}:", result.stderr] if result.returncode != 0 else []


def flags_of(header):
    return PYTHON_FLAGS if header.parts[:2] == ("src", "python") else []


def has_pybind11(compiler):
    command = [compiler, "-std=c++20", "-fsyntax-only", *PYTHON_FLAGS, "-x", "c++", "-"]
    return subprocess.run(command, input="#include <pybind11/pybind11.h>\n", capture_output=True, text=True, check=False).returncode == 0


def main():
    compiler = sys.argv[1] if len(sys.argv) > 1 else "g++"
    headers = [path.relative_to(ROOT) for top in ("include", "src") for path in sorted((ROOT / top).rglob("*")) if path.suffix in (".h", ".hpp")]
    if not has_pybind11(compiler):
        print("check_headers: src/python is skipped, pybind11-dev and python3-dev are not installed")
        headers = [header for header in headers if not flags_of(header)]
    jobs = [(header, "c++") for header in headers] + [(header, "c") for header in headers if header.suffix == ".h"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: complaints(compiler, *job), jobs)
        lines = [line for result in results for line in result]
    print("\n".join(lines) if lines else f"check_headers: ok, {len(headers)} headers")
    sys.exit(1 if lines or not headers else 0)


if __name__ == "__main__":
    main()
