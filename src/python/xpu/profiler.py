"""Profiles of this process, and recordings of others.

    with xpu.profiler.profile() as profile:
        with xpu.profiler.range("step"):
            work()
    print(profile.table())
    profile.export_chrome("trace.json.gz")

What ran on devices comes with its exact time there. Nothing is lost in silence: `report()["conservation"]` says what was submitted,
recorded, lost and pending.
"""

import contextlib
import json
import os
import warnings
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self

from . import _core
from ._core import ExportSummary
from ._errors import InvalidArgumentError

Path = str | os.PathLike[str]
By = Literal["", "process", "queue", "kernel", "thread"]
Sort = Literal["total", "calls", "avg", "min", "median", "p99", "max", "name"]


class _Outputs:
    """What can be made of a profile or a recording, as often as wanted."""

    _source: _core.LiveProfile | _core.RecordingFile

    def export_chrome(
        self, path: Path, *, device_only: bool = False, compatibility: Literal["", "hta"] = "", metadata: Mapping[str, str] | None = None
    ) -> ExportSummary:
        """Writes a timeline as JSON, for ui.perfetto.dev, TensorBoard and HTA; compressed when the name ends in .gz. Replaces the file."""
        return self._source.export_chrome(os.fspath(path), device_only, compatibility, list((metadata or {}).items()))

    def export_perfetto(self, path: Path, *, device_only: bool = False) -> ExportSummary:
        """The same in Perfetto's own format: a quarter as large, to the nanosecond."""
        return self._source.export_perfetto(os.fspath(path), device_only)

    def report(self, *, sort: Sort = "total", kernels: str = "", ranges: str = "", by: By = "") -> dict[str, Any]:
        """All figures, as `xpu report --json` has them. `kernels` and `ranges` are POSIX regular expressions."""
        return json.loads(self._source.report_json(sort, kernels, ranges, by))

    def table(self, *, top: int = 20, sort: Sort = "total", kernels: str = "", ranges: str = "", by: By = "", width: int = 0) -> str:
        """The tables of `xpu report`: at most `top` rows each (0: all), `width` columns (0: 100)."""
        return self._source.report_text(top, sort, kernels, ranges, by, width)


class Profile(_Outputs):
    """A profile of this process, which `profile` makes. `with` starts and stops it, or its methods do. Any thread."""

    def __init__(self, live: _core.LiveProfile, warm_up: bool, patience_s: float) -> None:
        self._source: _core.LiveProfile = live
        self._patience_s = patience_s
        if warm_up:
            live.prepare()

    @property
    def state(self) -> str:
        """created, warming up, collecting, stopped, collected or cancelled."""
        return self._source.state

    def start(self) -> None:
        """From now on it counts: what was submitted before is in no figure."""
        self._source.start()

    def pause(self) -> None:
        """What begins from now on is not part of it, until `resume`."""
        self._source.toggle(False)

    def resume(self) -> None:
        """What begins from now on is part of it again."""
        self._source.toggle(True)

    def stop(self) -> None:
        """Nothing new begins; waits for what began, at most the profile's patience. What has no end then is pending."""
        self._source.stop()
        self._source.collect(self._patience_s)

    def cancel(self) -> None:
        """Nothing is kept."""
        self._source.cancel()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if self.state == "collecting":
            self.stop()


class Recording(_Outputs):
    """A recording of `xpu record`, which `open` opened."""

    def __init__(self, file: _core.RecordingFile) -> None:
        self._source: _core.RecordingFile = file

    @property
    def path(self) -> str:
        """Of the file, or of the folder of a recording that is not finished."""
        return self._source.path

    @property
    def is_finished(self) -> bool:
        """False: it is still being made, or its recorder was killed."""
        return self._source.finished

    @property
    def damage(self) -> str:
        """What could not be read, in a sentence, or empty."""
        return self._source.damage


class Capability(NamedTuple):
    """Something that a profile can see or cannot, and why not or what it takes."""

    what: str
    is_available: bool
    reason: str


def profile(
    activities: Iterable[str] | None = None,
    *,
    kernels: str = "",
    buffer_mib: int | None = None,
    warm_up: bool = False,
    patience_s: float = 1.0,
    config: Mapping[str, object] | None = None,
) -> Profile:
    """A profile of this process, which begins with `with` or `start`.

    activities: names as in configurations of PyTorch's profiler ("kernel", "gpu_memcpy", "xpu_runtime", "user_annotation", …); None: everything
        but calls of drivers.
    kernels: a POSIX regular expression; other kernels are not recorded, only counted.
    buffer_mib: at most so much memory holds records.
    warm_up: recording begins at once, for nothing as yet, so that the first records that count are not the slow ones.
    patience_s: how long `stop` waits for what is not over.
    config: more keys and values of a configuration file (docs/profiler.md).

    Errors: InvalidArgumentError for a value that makes no sense; a warning for a key that has no effect.
    """
    keys: dict[str, object] = dict(config or {})
    if activities is not None:
        keys["ACTIVITY_TYPES"] = ",".join(activities)
    if buffer_mib is not None:
        keys["ACTIVITIES_MAX_GPU_BUFFER_SIZE_MB"] = buffer_mib
    live = _core.LiveProfile("".join(_line(key, value) for key, value in keys.items()), kernels)
    for sentence in live.warnings:
        warnings.warn(sentence, stacklevel=2)
    return Profile(live, warm_up, patience_s)


def open(path: Path) -> Recording:
    """A recording, by its file or its folder, with or without suffix."""
    return Recording(_core.RecordingFile(os.fspath(path)))


class range(contextlib.ContextDecorator):
    """A range on the timeline of this thread, for `with` or as a decorator. Ranges nest; unrecorded they cost next to nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> Self:
        _core.push_range(self.name)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        _core.pop_range()


def mark(name: str) -> None:
    """A moment on the timeline of this thread."""
    _core.mark(name)


def counter(name: str, value: float) -> None:
    """The value that the counter has from now on."""
    _core.counter(name, value)


def capabilities() -> list[Capability]:
    """What a profile that began now would see, and why not more. Opens, loads and starts nothing."""
    return [Capability(*row) for row in _core.capabilities()]


def _line(key: str, value: object) -> str:
    text = ("y" if value else "n") if isinstance(value, bool) else str(value)
    for part in (key, text):
        if any(character in part for character in "\n\r#"):
            raise InvalidArgumentError(f"The configuration {key!r}: {text!r} has a line break or a '#', which no key and no value may have.")
    return f"{key}={text}\n"
