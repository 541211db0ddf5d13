#!/usr/bin/env python3
"""Compiles every header of include/ and src/ alone: whoever includes one need not know what to include before it.

    tools/check_headers.py [COMPILER]    default g++; headers with the suffix .h are compiled as C11 and as C++20
"""

import concurrent.futures
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FLAGS = ["-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-DFMT_HEADER_ONLY", f"-I{ROOT}/include", f"-I{ROOT}/src"]


def complaints(compiler, header, language):
    include_root = ROOT / header.parts[0]
    text = f'#include "{(ROOT / header).relative_to(include_root)}"\n'
    standard = {"c": "-std=c11", "c++": "-std=c++20"}[language]
    command = [compiler, standard, *FLAGS, "-x", language, "-"]
    result = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return [f"{header} does not stand alone in {language}:", result.stderr] if result.returncode != 0 else []


def main():
    compiler = sys.argv[1] if len(sys.argv) > 1 else "g++"
    headers = [path.relative_to(ROOT) for top in ("include", "src") for path in sorted((ROOT / top).rglob("*")) if path.suffix in (".h", ".hpp")]
    jobs = [(header, "c++") for header in headers] + [(header, "c") for header in headers if header.suffix == ".h"]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda job: complaints(compiler, *job), jobs)
        lines = [line for result in results for line in result]
    print("\n".join(lines) if lines else f"check_headers: ok, {len(headers)} headers")
    sys.exit(1 if lines or not headers else 0)


if __name__ == "__main__":
    main()
