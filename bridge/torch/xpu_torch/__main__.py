"""python -m xpu_torch doctor"""
import sys

from ._doctor import main

if sys.argv[1:] not in ([], ["doctor"]):
    sys.exit(f"usage: python -m xpu_torch doctor (not {' '.join(sys.argv[1:])})")
main()
