#!/usr/bin/env python3
"""Becomes the program `xpu` that lies in the package, which finds its library and its layers beside itself."""
import importlib.util
import os
import signal
import sys

# The package is found and not imported: importing loads libxpu, and under `xpu record` this process would be in the recording.
package = importlib.util.find_spec("xpu")
if package is None or package.origin is None:
    sys.exit("xpu: the package xpu, which has the program, is not installed for " + sys.executable)
program = os.path.join(os.path.dirname(package.origin), "bin", "xpu")
# Python ignores these, and what is ignored stays so in the program and in what it runs.
for name in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(name, signal.SIG_DFL)
try:
    os.execv(program, ["xpu", *sys.argv[1:]])
except OSError as error:
    sys.exit(f"xpu: cannot execute {program}: {error.strerror}")
