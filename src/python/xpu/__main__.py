"""`python -m xpu doctor` says what is there; everything else is for the program `xpu`."""

import os
import signal
import sys


def main(arguments: list[str]) -> int:
    from xpu import doctor, program_path

    if arguments == ["doctor"]:
        found = doctor()
        print(found)
        return 0 if found.is_well else 1
    # What Python ignores would stay ignored in the program.
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)
    os.execv(program_path(), ["xpu", *arguments])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
