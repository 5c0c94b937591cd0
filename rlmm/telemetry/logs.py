"""
Log lines as they are written: for people on a terminal, else one JSON object a line.

The only module that imports structlog. Lines come from the standard library's loggers and gain what
`bound` binds; a line that cannot be formatted is written in another form and never lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO

import structlog
from structlog.contextvars import bound_contextvars as bound

from rlmm.errors import InvalidArgument
from rlmm.telemetry.repeats import Repeats
from rlmm.telemetry.settings import LogFormat, LoggingSettings, LogLevel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, MutableMapping

    from rlmm.telemetry.repeats import Repeated

__all__ = ["LogLines", "bound", "levels", "set_level", "set_up"]

_TICK_S = 1.0
"""How often windows of repeats are looked at when nothing is logged."""
_FIRST = ("time", "level", "logger", "message")
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(32), 127)}
"""A text from outside must not begin a line of its own, nor move the cursor."""


class LogLines(logging.StreamHandler[TextIO]):
    """Writes lines to a stream, repeats limited; `run` it where nothing may be logged for long."""

    def __init__(
        self, stream: TextIO, settings: LoggingSettings, now_ms: Callable[[], int]
    ) -> None:
        super().__init__(stream)
        self._repeats = Repeats(settings.repeats_max, settings.repeats_window_ms)
        self._window_s = settings.repeats_window_ms / 1_000
        self._now_ms = now_ms
        self.setFormatter(_formatter(settings.format, stream))

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line, unless it is one repeat too many; what is due is told first."""
        now_ms = self._now_ms()
        self._tell(self._repeats.due(now_ms))
        if self._repeats.admits(record.name, record.levelno, str(record.msg), now_ms):
            super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Write a line whose arguments do not fit its template as both of them."""
        if record.args:
            fitting = logging.makeLogRecord(record.__dict__)
            fitting.msg = f"{record.msg} (with arguments that do not fit: {record.args!r})"
            fitting.args = ()
            super().emit(fitting)
        else:
            super().handleError(record)

    def tell_repeats(self, *, is_end: bool = False) -> None:
        """Write the counts of windows that are over; at the end, of all."""
        self.acquire()
        try:
            self._tell(self._repeats.due(None if is_end else self._now_ms()))
        finally:
            self.release()

    async def run(self) -> None:
        """Tell counts in time, until cancelled."""
        while True:
            await asyncio.sleep(_TICK_S)
            self.tell_repeats()

    def _tell(self, repeated: list[Repeated]) -> None:
        for told in repeated:
            text = "%d more within %g s, not written: %s"
            arguments = (told.suppressed, self._window_s, told.template)
            record = logging.LogRecord(told.logger, told.level, "", 0, text, arguments, None)
            record.suppressed = told.suppressed
            super().emit(record)


@contextmanager
def set_up(
    settings: LoggingSettings,
    stream: TextIO | None = None,
    *,
    now_ms: Callable[[], int] = lambda: time.monotonic_ns() // 1_000_000,
) -> Iterator[LogLines]:
    """
    Write everything that is logged to *stream* (standard error) while the context lasts.

    Afterwards the loggers are as they were, and every line held back has been counted out.
    """
    root = logging.getLogger()
    modules = settings.module_levels()
    before = list(root.handlers)
    levels_before = {name: logging.getLogger(name).level for name in ("", *modules, *levels())}
    lines = LogLines(stream or sys.stderr, settings, now_ms)
    root.handlers[:] = [lines]
    set_level("", settings.level)
    for module, level in modules.items():
        set_level(module, level)
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
    Write lines of *module* and of all below it from *level* on; `""` is everything.

    Holds at once and for loggers that do not exist yet. Without a level, the module follows those
    above it again. Raises `InvalidArgument` for a level that does not exist.
    """
    if level is not None and level not in set(LogLevel):
        msg = f"the level of {module or 'all'} must be one of {', '.join(LogLevel)}, got {level!r}"
        raise InvalidArgument(msg)
    if level is None and not module:
        msg = "everything follows nothing above it: name a level"
        raise InvalidArgument(msg)
    logging.getLogger(module).setLevel(logging.NOTSET if level is None else level.upper())


def levels() -> dict[str, str]:
    """Module -> its own level, of those that have one; `""` is everything."""
    found = {"": logging.getLogger().level}
    for name, logger in list(logging.Logger.manager.loggerDict.items()):
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET:
            found[name] = logger.level
    return {name: logging.getLevelName(level).lower() for name, level in found.items()}


def _formatter(form: LogFormat, stream: TextIO) -> logging.Formatter:
    is_terminal = stream.isatty()
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.ExtraAdder(),
        structlog.stdlib.add_log_level,
        _stamp,
    ]
    last: list[structlog.typing.Processor]
    if form is LogFormat.JSON or (form is LogFormat.AUTO and not is_terminal):
        last = [
            structlog.processors.format_exc_info,
            structlog.processors.EventRenamer("message"),
            _ordered,
            structlog.processors.JSONRenderer(),
        ]
    else:
        last = [
            _one_line,
            structlog.dev.ConsoleRenderer(
                colors=is_terminal and not os.environ.get("NO_COLOR"),
                exception_formatter=structlog.dev.plain_traceback,
                timestamp_key="time",
                pad_event_to=0,
            ),
        ]
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    return structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove, *last])


def _stamp(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The record's own time, in UTC, and its logger: set last, so that no bound field hides it."""
    record: logging.LogRecord = event["_record"]
    at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
    event["time"] = at.replace("+00:00", "Z")
    event["logger"] = record.name
    return event


def _ordered(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """What every line has stands first."""
    return {**{name: event[name] for name in _FIRST}, **event}


def _one_line(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """A message without line breaks and control characters."""
    event["event"] = str(event["event"]).translate(_CONTROL)
    return event
