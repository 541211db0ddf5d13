#!/usr/bin/env python3
"""Writes everything that is made of src/api/opencl/entry_points.txt: the tables for C++ and the page for people.

    tools/generate_opencl_table.py               writes the files
    tools/generate_opencl_table.py --check       fails when a file is not what would be written, or when an entry of the dispatch table of the
                                                 installed CL/cl_icd.h has no row (or a row no entry, or the order differs)
    tools/generate_opencl_table.py --self-test   proves that the check can fail
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = "src/api/opencl/entry_points.txt"
HEADER = pathlib.Path("/usr/include/CL/cl_icd.h")
GENERATED_NOTE = "Written by tools/generate_opencl_table.py from src/api/opencl/entry_points.txt: change that file and run the tool."

CLASSES = ("submit", "wait", "create", "destroy", "query", "other")
TREATMENTS = {
    "command": "traced: an operation with device times",
    "wait": "traced: a synchronization",
    "object": "traced: an object or an allocation",
    "answer": "wrapped to keep its answer; traced as a call with `--api`",
    "call": "traced as a call with `--api`",
    "passed": "passed through, because",
}


class Row:
    def __init__(self, section, name, since, kind, treatment, reason):
        self.section, self.name, self.since, self.kind, self.treatment, self.reason = section, name, since, kind, treatment, reason

    def sentence(self):
        text = TREATMENTS[self.treatment]
        if self.treatment == "passed":
            return f"{text} {self.reason}"
        return f"{text} ({self.reason})" if self.reason else text


class BadTable(Exception):
    pass


def parse(text):
    rows, section = [], None
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = line.strip("[]")
            continue
        fields = [field.strip() for field in line.split("|")]
        if section not in ("dispatch", "extension") or len(fields) != 5:
            raise BadTable(f"{SOURCE}:{number}: expected 'name | since | class | treatment | reason' below [dispatch] or [extension]")
        row = Row(section, *fields)
        if row.kind not in CLASSES:
            raise BadTable(f"{SOURCE}:{number}: class '{row.kind}' is none of {', '.join(CLASSES)}")
        if row.treatment not in TREATMENTS:
            raise BadTable(f"{SOURCE}:{number}: treatment '{row.treatment}' is none of {', '.join(TREATMENTS)}")
        if row.treatment == "passed" and not row.reason:
            raise BadTable(f"{SOURCE}:{number}: {row.name} is passed through without a reason")
        if any(row.name == other.name for other in rows):
            raise BadTable(f"{SOURCE}:{number}: {row.name} has two rows")
        rows.append(row)
    return rows


def dispatch_entries(header_text):
    """The members of cl_icd_dispatch, in order."""
    match = re.search(r"typedef struct _cl_icd_dispatch \{(.*?)\} cl_icd_dispatch;", header_text, re.DOTALL)
    if not match:
        raise BadTable(f"{HEADER}: no cl_icd_dispatch found")
    body = re.sub(r"/\*.*?\*/|//[^\n]*", "", match.group(1), flags=re.DOTALL)
    return [member.split()[-1] for member in body.split(";") if member.strip()]


def compare_with_header(rows, entries):
    """Sentences about what the table and the header do not agree on."""
    named = [row.name for row in rows if row.section == "dispatch"]
    problems = [f"{name} is in the dispatch table of {HEADER} and has no row in {SOURCE}" for name in entries if name not in named]
    problems += [f"{name} has a row in {SOURCE} and is not in the dispatch table of {HEADER}" for name in named if name not in entries]
    if not problems and named != entries:
        problems.append(f"the rows of {SOURCE} are not in the order of the dispatch table of {HEADER}")
    return problems


def quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def api_table(rows):
    lines = [f"// {GENERATED_NOTE}", "// The includer defines XPU_OPENCL_ENTRY(name, since, class, treatment, reason) and XPU_OPENCL_EXTENSION with the same parameters.", ""]
    for row in rows:
        macro = "XPU_OPENCL_ENTRY" if row.section == "dispatch" else "XPU_OPENCL_EXTENSION"
        lines.append(f"{macro}({row.name}, {quoted(row.since)}, {row.kind}, {row.treatment}, {quoted(row.reason)})")
    return "\n".join(lines + ["", "#undef XPU_OPENCL_ENTRY", "#undef XPU_OPENCL_EXTENSION", ""])


def interceptor_table(rows):
    lines = [
        f"// {GENERATED_NOTE}",
        "// In the order of the dispatch table. The includer defines",
        "//   XPU_OPENCL_WRAPPED(name)  has a wrapper of its own, in every mode",
        "//   XPU_OPENCL_CALL(name)     wrapped as a plain call, in --api mode only",
        "//   XPU_OPENCL_PASSED(name)   never wrapped",
        "//   XPU_OPENCL_EXTENSION_WRAPPED(name), XPU_OPENCL_EXTENSION_PASSED(name)   reached by name only",
        "",
    ]
    for row in rows:
        kind = {"call": "CALL", "passed": "PASSED"}.get(row.treatment, "WRAPPED")
        prefix = "XPU_OPENCL_" if row.section == "dispatch" else "XPU_OPENCL_EXTENSION_"
        lines.append(f"{prefix}{kind}({row.name})")
    lines.append("")
    lines += [f"#undef XPU_OPENCL_{name}" for name in ("WRAPPED", "CALL", "PASSED", "EXTENSION_WRAPPED", "EXTENSION_PASSED")]
    return "\n".join(lines + [""])


def page(rows):
    counts = {}
    for row in rows:
        if row.section == "dispatch":
            counts[row.treatment] = counts.get(row.treatment, 0) + 1
    lines = [
        "# OpenCL entry points",
        "",
        f"<!-- {GENERATED_NOTE} -->",
        "",
        "What the OpenCL interceptor (`libxpu_layer_opencl.so`) does with every entry point of the loader's dispatch table, in the table's order: "
        + ", ".join(f"{counts[name]} {name}" for name in TREATMENTS if name in counts)
        + ". *Traced* holds in every mode unless `--api` is named.",
        "",
        "| entry point | since | class | treatment |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{row.name}` | {row.since} | {row.kind} | {row.sentence()} |" for row in rows if row.section == "dispatch"]
    lines += [
        "",
        "## Extension entry points that submit, create or destroy",
        "",
        "They are not in the dispatch table: a program asks for their addresses with `clGetExtensionFunctionAddress` or `clGetExtensionFunctionAddressForPlatform`. "
        "When it asks for one that submits and is passed through, the recording gets a mark that names it.",
        "",
        "| entry point | extension | class | treatment |",
        "|---|---|---|---|",
    ]
    lines += [f"| `{row.name}` | {row.since} | {row.kind} | {row.sentence()} |" for row in rows if row.section == "extension"]
    return "\n".join(lines + [""])


OUTPUTS = {
    "src/api/opencl/entry_points.inc": api_table,
    "src/interceptors/opencl/entry_points.inc": interceptor_table,
    "docs/opencl_entry_points.md": page,
}


def write(root):
    rows = parse((root / SOURCE).read_text(encoding="utf-8"))
    for name, make in OUTPUTS.items():
        (root / name).write_text(make(rows), encoding="utf-8")


def check(root, header_text):
    rows = parse((root / SOURCE).read_text(encoding="utf-8"))
    problems = []
    for name, make in OUTPUTS.items():
        path = root / name
        if not path.exists() or path.read_text(encoding="utf-8") != make(rows):
            problems.append(f"{name} is not what tools/generate_opencl_table.py writes: run it")
    if header_text is not None:
        problems += compare_with_header(rows, dispatch_entries(header_text))
    return problems


def self_test():
    header = "typedef struct _cl_icd_dispatch {\n  /* OpenCL 1.0; old */\n  cl_api_a clA;\n  cl_api_b\n    clB;\n} cl_icd_dispatch;"
    good = "[dispatch]\nclA | 1.0 | query | call |\nclB | 1.0 | submit | passed | nobody has it\n"
    assert dispatch_entries(header) == ["clA", "clB"]
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in [SOURCE, *OUTPUTS]:
            (root / name).parent.mkdir(parents=True, exist_ok=True)

        def problems_of(table, written_from=None):
            (root / SOURCE).write_text(written_from or table, encoding="utf-8")
            write(root)
            (root / SOURCE).write_text(table, encoding="utf-8")
            return check(root, header)

        assert problems_of(good) == []
        assert any("clB is in the dispatch table" in problem for problem in problems_of("[dispatch]\nclA | 1.0 | query | call |\n"))
        assert any("clC has a row" in problem for problem in problems_of(good + "clC | 1.0 | query | call |\n"))
        swapped = "[dispatch]\n" + "\n".join(reversed(good.splitlines()[1:])) + "\n"
        assert any("order" in problem for problem in problems_of(swapped))
        stale = problems_of(good.replace("nobody", "no driver"), written_from=good)
        assert len(stale) == 2 and all("run it" in problem for problem in stale), stale
    for bad in ("clA | 1.0 | query | call |", "[dispatch]\nclA | 1.0 | query | passed |", "[dispatch]\nclA | 1.0 | nothing | call |", "[dispatch]\nclA | 1.0 | query | often |"):
        try:
            parse(bad)
        except BadTable:
            continue
        raise AssertionError(f"accepted: {bad}")
    print("generate_opencl_table: self-test ok")


def main():
    arguments = sys.argv[1:]
    if arguments == ["--self-test"]:
        self_test()
        return 0
    if arguments == []:
        write(ROOT)
        return 0
    if arguments != ["--check"]:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    header_text = HEADER.read_text(encoding="utf-8") if HEADER.exists() else None
    if header_text is None:
        print(f"generate_opencl_table: {HEADER} is not installed, its entries were not compared")
    problems = check(ROOT, header_text)
    for problem in problems:
        print(f"generate_opencl_table: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BadTable as problem:
        print(f"generate_opencl_table: {problem}", file=sys.stderr)
        sys.exit(1)
