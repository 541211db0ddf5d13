#!/usr/bin/env python3
"""Fails on an #include that the table of layers does not allow.

    tools/check_layers.py [ROOT]        checks include/, src/ and bridge/ below ROOT (default: this repository)
    tools/check_layers.py --self-test   proves with small trees that each rule can fail

Two include roots: include/ ("xpu/<layer>/...", public) and src/ ("<layer>/...", private). A layer sees the public headers of the layers that
it may use; private headers belong to their layer, and only those of OFFERS_PRIVATE are shared with the layers above. Tests may include anything.
"""

import pathlib
import re
import sys
import tempfile

# Layer -> layers that it may use. A layer may always use itself; a name also stands for the folders below it (drivers/<name>).
MAY_USE = {
    "base": [],
    "api": ["base"],
    "hal": ["base"],
    "drivers": ["hal", "api", "base"],
    "memory": ["hal", "base"],
    "runtime": ["memory", "hal", "base"],
    "trace": ["base"],
    "profiler": ["trace", "base"],
    "interceptors": ["api", "base"],
    "frontends/pti": ["trace", "base"],
    "frontends/level_zero": ["hal", "api", "base"],
    "cli": ["public"],
    "python": ["public"],
    "bridge/torch": ["public"],
    "bridge/triton": ["public"],
}
OFFERS_PRIVATE = {"base", "hal"}
SEPARATE_SIBLINGS = {"drivers", "interceptors"}  # drivers/host may not include drivers/sim
UNLAYERED_PUBLIC = {"annotate.h", "xpu.hpp"}  # directly in include/xpu/
MAY_INCLUDE_UMBRELLA = {"cli", "python", "bridge/torch", "bridge/triton"}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
# What a public header may name with <>: any C++ header (they have no suffix), the headers of C itself, and the dynamic linker's, which
# annotate.h asks whether the library is there.
STANDARD_CPP_HEADER = re.compile(r"^[a-z_0-9]+$")
STANDARD_C_HEADERS = {"dlfcn.h", "inttypes.h", "limits.h", "stdbool.h", "stddef.h", "stdint.h", "string.h"}
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".inc"}


def layer_of(parts):
    """The layer that a path belongs to, given its parts below the include root, e.g. ("drivers", "host", "queue.cpp")."""
    for length in (2, 1):
        name = "/".join(parts[:length])
        if len(parts) > length and name in MAY_USE:
            return name
    return None


def sibling_of(layer, parts):
    return parts[1] if layer in SEPARATE_SIBLINGS and len(parts) > 2 else None


def is_test(path):
    return path.stem.endswith(("_test", "_bench", "_fuzz")) or "tests" in path.parts


class Checker:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.include_count = 0

    def run(self):
        for top in ("include/xpu", "src", "bridge"):
            for path in sorted((self.root / top).rglob("*")):
                if path.suffix in SUFFIXES and path.is_file():
                    self.check_file(path.relative_to(self.root))
        return self.problems

    def check_file(self, path):
        is_public = path.parts[0] == "include"
        below_root = path.parts[2:] if is_public else path.parts[1:] if path.parts[0] == "src" else path.parts
        layer = layer_of(below_root)
        if is_public and len(below_root) == 1 and below_root[0] in UNLAYERED_PUBLIC:
            layer = "umbrella"
        if layer is None:
            self.problems.append(f"{path}: belongs to no layer of the table in tools/check_layers.py")
            return
        if is_test(path):
            return
        for number, line in enumerate((self.root / path).read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if match:
                self.include_count += 1
                if layer.startswith("bridge/") and self.is_of_bridge(layer, match.group(1), match.group(2)):
                    continue
                reason = self.forbidden(layer, sibling_of(layer, below_root), is_public, match.group(1), match.group(2))
                if reason:
                    self.problems.append(f"{path}:{number}: {layer} may not include {match.group(2)}: {reason}")

    def is_of_bridge(self, layer, quote, name):
        return quote == '"' and "/" not in name and (self.root / layer / "src" / name).is_file()

    def forbidden(self, layer, sibling, is_public, quote, name):
        """The reason why this include is forbidden, or None."""
        parts = pathlib.PurePosixPath(name).parts
        if ".." in parts or "." in parts:
            return "name it from an include root"
        if parts[0] == "xpu":
            return self.forbidden_public(layer, parts[1:])
        target = layer_of(parts)
        if target is None:
            return self.forbidden_foreign(is_public, quote, name)
        if is_public:
            return "a public header may not include a private one"
        if target == layer:
            if sibling != sibling_of(target, parts):
                return f"{parts[0]}/{parts[1]} is a layer of its own"
            return None
        if "public" in MAY_USE[layer]:
            return f"{layer} sees public headers only"
        if target not in MAY_USE[layer]:
            return f"it may use {', '.join(MAY_USE[layer]) or 'no other layer'}"
        if target not in OFFERS_PRIVATE:
            return f"src/{target}/ is private to {target}"
        return None

    def forbidden_public(self, layer, parts):
        if len(parts) == 1:
            if parts[0] not in UNLAYERED_PUBLIC:
                return "there is no such public header"
            if parts[0] == "xpu.hpp" and layer not in MAY_INCLUDE_UMBRELLA:
                return "the umbrella header is for users of the library"
            return None
        target = layer_of(parts)
        if target is None:
            return "it belongs to no layer"
        if layer == "umbrella" or target == layer or "public" in MAY_USE[layer] or target in MAY_USE[layer]:
            return None
        return f"it may use {', '.join(MAY_USE[layer]) or 'no other layer'}"

    def forbidden_foreign(self, is_public, quote, name):
        if quote == '"':
            return "no include root has it; what is not ours is included with <>"
        if is_public and not STANDARD_CPP_HEADER.match(name) and name not in STANDARD_C_HEADERS:
            return "public headers need the standard library only"
        return None


def self_test():
    allowed = {
        "src/trace/a.cpp": '#include "trace/b.hpp"\n#include "xpu/trace/c.hpp"\n#include "xpu/base/d.hpp"\n#include "base/e.hpp"\n#include <fmt/format.h>\n',
        "include/xpu/trace/c.hpp": "#include <cstdint>\n#include <stdint.h>\n",
        "src/cli/main.cpp": '#include "xpu/profiler/session.hpp"\n#include "cli/options.hpp"\n',
        "src/interceptors/opencl/a.cpp": '#include "xpu/api/names.hpp"\n#include "interceptors/opencl/b.hpp"\n#include "base/probe.hpp"\n',
        "src/trace/a_test.cpp": '#include "profiler/anything.hpp"\n',
        "bridge/torch/src/a.hpp": '#include "a.hpp"\n#include "xpu/runtime/stream.hpp"\n#include <ATen/core/Tensor.h>\n',
    }
    forbidden = {
        "an upward include": ("src/base/a.cpp", '#include "xpu/trace/records.hpp"\n'),
        "a private header of another layer": ("src/profiler/a.cpp", '#include "trace/chunk.hpp"\n'),
        "a private header from the program": ("src/cli/a.cpp", '#include "base/log.hpp"\n'),
        "the tracer from an interceptor": ("src/interceptors/opencl/a.cpp", '#include "xpu/trace/records.hpp"\n'),
        "a sibling": ("src/interceptors/opencl/a.cpp", '#include "interceptors/level_zero/a.hpp"\n'),
        "the other column": ("src/runtime/a.cpp", '#include "xpu/profiler/session.hpp"\n'),
        "a private header from a public one": ("include/xpu/base/a.hpp", '#include "base/probe.hpp"\n'),
        "a library in a public header": ("include/xpu/base/a.hpp", "#include <fmt/format.h>\n"),
        "another library in a public header": ("include/xpu/base/a.hpp", "#include <zlib.h>\n"),
        "a relative path": ("src/base/a.cpp", '#include "../trace/a.hpp"\n'),
        "an unknown layer": ("src/misc/a.cpp", "#include <cstdint>\n"),
        "a bridge's header that is not there": ("bridge/torch/src/a.cpp", '#include "b.hpp"\n'),
        "a private header from a bridge": ("bridge/torch/src/a.cpp", '#include "base/probe.hpp"\n'),
        "a quoted name that is not ours": ("src/base/a.cpp", '#include "fmt/format.h"\n'),
    }
    with tempfile.TemporaryDirectory() as folder:
        cases = [(f"allowed: {path}", path, text, False) for path, text in allowed.items()]
        cases += [(what, path, text, True) for what, (path, text) in forbidden.items()]
        for index, (what, path, text, is_refused) in enumerate(cases):
            root = pathlib.Path(folder) / str(index)
            (root / path).parent.mkdir(parents=True)
            (root / path).write_text(text, encoding="utf-8")
            problems = Checker(root).run()
            if bool(problems) != is_refused:
                sys.exit(f"check_layers: self-test '{what}': {problems or 'was not refused'}")
    print("check_layers: self-test ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
    checker = Checker(root)
    for problem in checker.run():
        print(problem, file=sys.stderr)
    if checker.problems:
        sys.exit(1)
    print(f"check_layers: ok, {checker.include_count} includes")


if __name__ == "__main__":
    main()
