"""
Logs: lines for people on a terminal, else one JSON object a line. Only this module uses structlog,
for people.

A record that cannot be formatted is written in another form, never dropped; a line that cannot be
written is counted.
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import sys
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from rlmm.base.log_context import IS_ANSWER, bound_fields
from rlmm.base.visible_text import visible
from rlmm.errors import InvalidArgument
from rlmm.telemetry.json_lines import JsonLineFormatter, time_of
from rlmm.telemetry.line_thread import LineThread
from rlmm.telemetry.repeats import LineKind, RepeatedLines
from rlmm.telemetry.settings import LogFormat, LoggingSettings, LogLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, MutableMapping

    from rlmm.telemetry.repeats import RepeatCount

    LineStream = TextIO | LineThread

_TICK_S = 1.0
"""How often windows of repeats are looked at when nothing is logged."""
_INDENT = "    "
"""Stands before each line of a traceback: none of them can pass for a line of the log."""


@dataclass(frozen=True, slots=True)
class LinesStatistics:
    written: Mapping[str, int]
    """By level, of lines that the stream took; the counts of repeats are lines as well."""
    suppressed: int
    failed: int
    """Lines whose writing failed: the stream is closed, its reader is gone or stands still, the
    disk is full."""
    last_failure: str


class LogLines(logging.StreamHandler["LineStream"]):
    """A handler that writes lines to a stream and limits repeats; `run` reports held-back lines."""

    def __init__(
        self, stream: LineStream, settings: LoggingSettings, now_ms: Callable[[], int]
    ) -> None:
        super().__init__(stream)
        self._settings = settings
        self._repeats = RepeatedLines(settings.repeats_max, settings.repeats_window_ms)
        self._now_ms = now_ms
        self._written: Counter[str] = Counter()
        self._suppressed = self._failed = 0
        self._last_failure = ""
        self.setFormatter(_formatter(settings.format, stream))

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line unless its kind reached its limit; report counts that are due first."""
        now_ms = self._now_ms()
        self._tell(self._repeats.due(now_ms))
        is_answer = bool(record.__dict__.pop(IS_ANSWER, False))
        for name, value in bound_fields().items():
            record.__dict__.setdefault(name, value)  # what the line itself says counts more
        kind = LineKind(
            record.name, record.levelno, str(record.msg), getattr(record, "cluster", None)
        )
        place = getattr(record, "metadata_partition", None)
        if is_answer or self._repeats.admits(kind, place, now_ms):
            self._write(record)
        else:
            self._suppressed += 1

    def handleError(self, record: logging.LogRecord) -> None:
        """Write the parts of a record that cannot be formatted; count a failure to write."""
        error = sys.exc_info()[1]
        if isinstance(error, OSError) or self.stream.closed:
            self._failed += 1
            self._last_failure = f"{type(error).__name__}: {error}"
        elif record.args:
            fitting = logging.makeLogRecord(record.__dict__)
            fitting.msg = f"{record.msg} (with arguments that do not fit: {record.args!r})"
            fitting.args = ()
            super().emit(fitting)
        else:
            self._failed += 1
            self._last_failure = f"{type(error).__name__}: {error}"
            super().handleError(record)

    @property
    def form(self) -> LogFormat:
        return self._settings.format

    def statistics(self) -> LinesStatistics:
        failed, last_failure = self._failed, self._last_failure
        if isinstance(self.stream, LineThread):
            failed += self.stream.failed
            last_failure = last_failure or self.stream.last_failure
        return LinesStatistics(dict(self._written), self._suppressed, failed, last_failure)

    def wait_room(self) -> bool:
        """Wait until a line that may wait has room; false where the stream takes none for long."""
        return not isinstance(self.stream, LineThread) or self.stream.wait_room()

    def drain(self) -> None:
        """Wait until the lines are written, or their reader takes none for some seconds."""
        if isinstance(self.stream, LineThread):
            self.stream.end()

    def change(self, settings: LoggingSettings) -> None:
        """Apply *settings*; levels of `set_level` that the settings do not name stay."""
        self.acquire()
        try:
            before, self._settings = self._settings, settings
            self._repeats.limit(settings.repeats_max, settings.repeats_window_ms)
            self.setFormatter(_formatter(settings.format, self.stream))
        finally:
            self.release()
        set_level("", settings.level)
        modules = settings.module_levels()
        for module in before.module_levels().keys() - modules.keys():
            set_level(module, None)
        for module, level in modules.items():
            set_level(module, level)

    def tell_repeats(self, *, is_end: bool = False) -> None:
        self.acquire()
        try:
            self._tell(self._repeats.due(None if is_end else self._now_ms()))
        finally:
            self.release()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_TICK_S)
            self.tell_repeats()

    def _tell(self, repeated: list[RepeatCount]) -> None:
        for told in repeated:
            text = "%d more within %g s, not written: %s"
            kind = told.kind
            arguments = (told.suppressed, told.window_ms / 1_000, kind.template)
            record = logging.LogRecord(kind.logger, kind.level, "", 0, text, arguments, None)
            record.suppressed = told.suppressed
            if kind.cluster is not None:
                record.cluster = kind.cluster
            self._write(record)

    def _write(self, record: logging.LogRecord) -> None:
        failed = self._failed
        super().emit(record)
        if self._failed == failed:
            self._written[record.levelname.lower()] += 1


@contextmanager
def set_up(
    settings: LoggingSettings,
    stream: LineStream | None = None,
    *,
    now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
) -> Iterator[LogLines]:
    """
    Write all log records to *stream* (standard error) while the context lasts.

    On exit the loggers are restored, and every held-back line has been counted in the output.
    """
    root = logging.getLogger()
    before = list(root.handlers)
    levels_before = {name: logging.getLogger(name).level for name in ("", *levels())}
    lines = LogLines(stream or sys.stderr or _nowhere(), settings, now_ms)
    root.handlers[:] = [lines]
    lines.change(settings)
    logging.captureWarnings(capture=True)
    try:
        yield lines
    finally:
        lines.tell_repeats(is_end=True)
        logging.captureWarnings(capture=False)
        root.handlers[:] = before
        for name in {*levels(), *levels_before}:
            logging.getLogger(name).setLevel(levels_before.get(name, logging.NOTSET))


def set_level(module: str, level: str | None) -> None:
    """
    Write records of *module* and loggers below it from *level* on; `""` is the root.

    Applies at once, also to future loggers. Without a level the module inherits again. Raises
    `InvalidArgument` for an unknown level.
    """
    if level is not None and level not in set(LogLevel):
        msg = f"the level of {module or 'all'} must be one of {', '.join(LogLevel)}, got {level!r}"
        raise InvalidArgument(msg)
    if level is None and not module:
        msg = "everything follows nothing above it: name a level"
        raise InvalidArgument(msg)
    logging.getLogger(module).setLevel(logging.NOTSET if level is None else level.upper())


def is_json(form: LogFormat, stream: LineStream | None) -> bool:
    return form is LogFormat.JSON or (form is LogFormat.AUTO and not _is_terminal(stream))


def levels() -> dict[str, str]:
    found = {"": logging.getLogger().level}
    for name, logger in list(logging.Logger.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET:
            found[name] = logger.level
    return {name: logging.getLevelName(level).lower() for name, level in found.items()}


def _nowhere() -> TextIO:
    stream = io.StringIO()
    stream.close()
    return stream


def _is_terminal(stream: LineStream | None) -> bool:
    return stream is not None and not stream.closed and stream.isatty()


def _formatter(form: LogFormat, stream: LineStream) -> logging.Formatter:
    if is_json(form, stream):
        return JsonLineFormatter()
    import structlog  # noqa: PLC0415  # not for lines that programs read; it imports rich

    shared: list[structlog.typing.Processor] = [
        structlog.stdlib.ExtraAdder(),
        structlog.stdlib.add_log_level,
        _stamp,
    ]
    last: list[structlog.typing.Processor] = [
        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
        structlog.processors.format_exc_info,
        _visible,
        structlog.dev.ConsoleRenderer(
            colors=_is_terminal(stream) and not os.environ.get("NO_COLOR"),
            timestamp_key="time",
            pad_event_to=0,
        ),
    ]
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=last)


def _stamp(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add time and logger of the record; last, so that no bound field hides them."""
    record: logging.LogRecord = event["_record"]
    event["time"] = time_of(record)
    event["logger"] = record.name
    return event


def _visible(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Escape what a text from outside could move the cursor with, or begin a line of its own."""
    event["event"] = str(event["event"])
    exception = event.pop("exception", None)
    shown = {name: visible(one) if isinstance(one, str) else one for name, one in event.items()}
    if exception is not None:
        lines = str(exception).split("\n")
        shown["exception"] = "\n".join(_INDENT + visible(line) for line in lines)
    return shown
