"""Where the files of the package are."""

import pathlib

_PACKAGE = pathlib.Path(__file__).parent.absolute()


def cmake_prefix() -> str:
    """The folder for CMAKE_PREFIX_PATH, with which find_package(xpu CONFIG) finds the library."""
    return str(_PACKAGE)


def include_dir() -> str:
    """The folder for the compiler: it has xpu/xpu.hpp."""
    return str(_PACKAGE / "include")


def library_path() -> str:
    """The one library, libxpu.so.0, that everything of the package links to."""
    return str(_PACKAGE / "lib" / "libxpu.so.0")


def program_path() -> str:
    """The program `xpu`."""
    return str(_PACKAGE / "bin" / "xpu")
