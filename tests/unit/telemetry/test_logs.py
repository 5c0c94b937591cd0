"""Log lines as they are written."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.log_context import ANSWER, bound
from rlmm.errors import InvalidArgument
from rlmm.telemetry.logs import LinesStatistics, levels, set_level, set_up
from rlmm.telemetry.settings import LogFormat, LoggingSettings, LogLevel
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("rlmm.tests.lines")


class Written(io.StringIO):
    """Written lines, with a clock that stands still; *is_terminal* sets the kind of stream."""

    def __init__(self, *, is_terminal: bool = False) -> None:
        super().__init__()
        self.is_terminal = is_terminal
        self.now_ms = 0

    def isatty(self) -> bool:
        return self.is_terminal

    @property
    def lines(self) -> list[str]:
        return self.getvalue().splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        """Every line as the JSON object that it is."""
        return [json.loads(line) for line in self.lines]

    @property
    def messages(self) -> list[str]:
        return [found["message"] for found in self.objects]


@contextmanager
def logging_to(written: Written, **settings: Any) -> Iterator[Written]:
    """Log to *written* with these settings."""
    with set_up(LoggingSettings(**settings), written, now_ms=lambda: written.now_ms):
        yield written


def test_line_when_no_terminal_reads_it_then_is_one_json_object() -> None:
    """The line has UTC time, level, logger and message, and then the fields."""
    with logging_to(Written()) as written, bound(cluster="c1"):
        log.warning("partition %d at\n%d", 3, 17, extra={"offset": 17})
    (line,) = written.lines
    found = json.loads(line)
    assert list(found)[:4] == ["time", "level", "logger", "message"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("time"))
    assert found == {
        "level": "warning",
        "logger": "rlmm.tests.lines",
        "message": "partition 3 at\n17",
        "offset": 17,
        "cluster": "c1",
    }


def test_line_when_its_context_is_over_then_has_no_more_of_it() -> None:
    """A bound field ends with its block."""
    with logging_to(Written()) as written:
        with bound(cluster="c1"):
            log.warning("one")
        log.warning("two")
    assert [found.get("cluster") for found in written.objects] == ["c1", None]


def test_exception_when_logged_then_is_one_field() -> None:
    """A traceback does not break the line."""
    with logging_to(Written()) as written:
        try:
            int("no\nnumber")
        except ValueError:
            log.exception("failed at %d", 3)
    (found,) = written.objects
    assert found["message"] == "failed at 3"
    assert found["exception"].startswith("Traceback")
    assert found["exception"].endswith(r"with base 10: 'no\nnumber'")


def test_line_when_a_terminal_reads_it_then_is_for_people() -> None:
    """Time, level, message and fields in one line; a message cannot begin a line of its own."""
    with logging_to(Written(is_terminal=True)) as written:
        log.warning("topic %s", "a\n\x1b[2Jb", extra={"offset": 17})
    (line,) = written.lines
    plain = re.sub(r"\x1b\[[0-9;]*m", "", line)
    assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z \[warning *\] ", plain)
    assert r"topic a\x0a\x1b[2Jb" in plain
    assert "offset=17" in plain
    assert "rlmm.tests.lines" in plain


def test_human_lines_when_texts_are_hostile_then_are_escaped_and_lines_are_ours() -> None:
    """No message, field or traceback moves the cursor, turns the text, or forges a line."""
    hostile = "\x9b31m\u202e\x1b[2J\n2026-01-01T00:00:00.000Z [info] all is well"
    with logging_to(Written(), format=LogFormat.HUMAN) as written:
        error = ValueError(hostile)
        log.error("said %s", hostile, extra={"field": hostile}, exc_info=error)
    text = written.getvalue()
    assert [letter for letter in "\x9b\u202e\x1b" if letter in text] == []
    first, *trace = text.splitlines()
    assert "said \\x9b31m\\x202e\\x1b[2J\\x0a2026" in first
    assert "field=" in first
    assert trace
    assert [line for line in trace if not line.startswith("    ")] == []


def test_colours_when_unwanted_then_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """`NO_COLOR` and a stream that is no terminal give lines without colours."""
    monkeypatch.setenv("NO_COLOR", "1")
    with logging_to(Written(is_terminal=True)) as on_terminal:
        log.warning("one")
    monkeypatch.delenv("NO_COLOR")
    with logging_to(Written(), format=LogFormat.HUMAN) as elsewhere:
        log.warning("one")
    with logging_to(Written(is_terminal=True)) as coloured:
        log.warning("one")
    assert "\x1b" not in on_terminal.getvalue() + elsewhere.getvalue()
    assert "\x1b" in coloured.getvalue()


def test_format_when_said_then_counts_more_than_the_terminal() -> None:
    """An explicit format overrides the one for the terminal."""
    with logging_to(Written(is_terminal=True), format=LogFormat.JSON) as written:
        log.warning("one")
    assert written.messages == ["one"]


def test_level_when_changed_while_running_then_holds_at_once() -> None:
    """A level holds at once for a module and those below; without one the parent's counts."""
    with logging_to(Written(), level=LogLevel.WARNING) as written:
        log.info("not written")
        set_level("rlmm.tests", "info")
        log.info("one")
        logging.getLogger("rlmm.tests.born.later").info("two")
        logging.getLogger("other").info("not written")
        set_level("rlmm.tests", None)
        log.info("not written")
        set_level("", "info")
        log.info("three")
    assert written.messages == ["one", "two", "three"]


def test_levels_when_configured_then_the_longest_name_counts() -> None:
    """A part of a silenced module can speak."""
    said_of = {"rlmm.tests": "error", "rlmm.tests.lines": "debug"}
    said = tuple(f"{module}={level}" for module, level in said_of.items())
    with logging_to(Written(), levels=said) as written:
        ours = {name: level for name, level in levels().items() if name in {"", *said_of}}
        assert ours == {"": "info", **said_of}
        log.debug("one")
        logging.getLogger("rlmm.tests.others").warning("not written")
    assert written.messages == ["one"]


@pytest.mark.parametrize(
    ("module", "level"), [("rlmm", "loud"), ("rlmm", "INFO"), ("", None)], ids=str
)
def test_level_when_there_is_none_such_then_is_refused(module: str, level: str | None) -> None:
    """A level is one of four words, and everything needs one."""
    with pytest.raises(InvalidArgument, match="level"):
        set_level(module, level)


def test_repeats_when_too_many_then_are_counted_and_told() -> None:
    """The count of suppressed lines comes before the first line of the next window."""
    with logging_to(Written(), repeats_max=2, repeats_window_ms=1_000) as written:
        for broker in range(5):
            log.warning("broker %d is away", broker)
        log.error("another")
        written.now_ms = 1_000
        log.warning("broker %d is away", 9)
    assert written.messages == [
        "broker 0 is away",
        "broker 1 is away",
        "another",
        "3 more within 1 s, not written: broker %d is away",
        "broker 9 is away",
    ]
    told = written.objects[3]
    assert (told["suppressed"], told["level"], told["logger"]) == (3, "warning", log.name)


def test_repeats_when_it_ends_then_are_told() -> None:
    """The end of logging writes the counts of suppressed lines."""
    with logging_to(Written(), repeats_max=1) as written:
        log.warning("one")
        log.warning("one")
    assert written.messages == ["one", "1 more within 60 s, not written: one"]


def test_repeats_when_nothing_else_is_logged_then_are_told_in_time() -> None:
    """The task writes the counts when their window ends, without another line."""
    written = Written()
    settings = LoggingSettings(repeats_max=1, repeats_window_ms=5_000)
    loop = VirtualTimeLoop()

    async def scenario() -> None:
        with set_up(settings, written, now_ms=lambda: int(loop.time() * 1_000)) as lines:
            log.warning("one")
            log.warning("one")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(7):
                    await lines.run()
            assert len(written.lines) == 2

    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(scenario())
    assert written.messages[1] == "1 more within 5 s, not written: one"


def test_line_when_its_arguments_do_not_fit_then_is_written_all_the_same() -> None:
    """A slip in a log call loses nothing and breaks no line."""
    with logging_to(Written()) as written:
        log.warning("partition %d", "x")
        log.warning("%(partition)d", {"offset": 1})
    assert written.messages == [
        "partition %d (with arguments that do not fit: ('x',))",
        "%(partition)d (with arguments that do not fit: {'offset': 1})",
    ]


def test_value_when_json_has_none_such_then_is_written_as_text() -> None:
    """A value without a JSON form is written as text."""
    with logging_to(Written()) as written, bound(path=object, half="\ud83d"):
        log.warning("one")
    assert written.objects[0]["path"] == "<class 'object'>"


def test_warning_of_python_when_raised_then_is_a_line_as_well() -> None:
    """A warning of Python is written as a log line."""
    with logging_to(Written()) as written, warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn("old", stacklevel=1)
    assert "old" in written.messages[0]


def test_loggers_when_it_is_over_then_are_as_they_were() -> None:
    """The end of logging restores the former loggers."""
    before = (logging.getLogger().handlers[:], levels())
    with logging_to(Written(), levels=("rlmm.tests=debug",)):
        set_level("rlmm.tests.other", "error")
    assert (logging.getLogger().handlers[:], levels()) == before


def test_line_when_it_says_a_field_itself_then_that_counts_more_than_what_is_bound() -> None:
    """A field of the line overrides a bound one, and the inner block overrides the outer one."""
    with logging_to(Written()) as written, bound(cluster="c1", metadata_partition=1):
        log.warning("one", extra={"metadata_partition": 2})
        with bound(metadata_partition=3):
            log.warning("two")
        log.warning("three")
    assert [line["metadata_partition"] for line in written.objects] == [2, 3, 1]
    assert {line["cluster"] for line in written.objects} == {"c1"}
    assert list(written.objects[0])[4:] == ["cluster", "metadata_partition"]


def test_repeats_when_of_two_clusters_then_are_counted_apart_and_told_with_their_cluster() -> None:
    """Repeats of two clusters are counted apart, and each count names its cluster."""
    with logging_to(Written(), repeats_max=1) as written:
        for cluster in ("east", "east", "west"):
            with bound(cluster=cluster, metadata_partition=3):
                log.warning("away")
    assert [(line["cluster"], line["message"]) for line in written.objects] == [
        ("east", "away"),
        ("west", "away"),
        ("east", "1 more within 60 s, not written: away"),
    ]
    assert "metadata_partition" not in written.objects[2]


def test_settings_when_changed_then_all_of_them_hold_at_once() -> None:
    """Levels, those of modules that are not named any more, format and limits."""
    old = LoggingSettings(level=LogLevel.ERROR, levels=("rlmm.tests=debug",), repeats_max=1)
    written = Written()
    with set_up(old, written, now_ms=lambda: 0) as lines:
        set_level("rlmm.others", "debug")
        log.debug("one")
        lines.change(LoggingSettings(level=LogLevel.INFO, levels=("aiokafka=error",)))
        log.debug("not written")
        log.info("two")
        logging.getLogger("aiokafka.client").warning("not written")
        logging.getLogger("rlmm.others").debug("three")
        lines.change(LoggingSettings(format=LogFormat.HUMAN, repeats_max=1))
        log.info("four")
        log.info("four")
    assert [json.loads(line)["message"] for line in written.lines[:3]] == ["one", "two", "three"]
    assert "four" in written.lines[3]
    assert "1 more within" in written.lines[4]
    assert len(written.lines) == 5


class Failing(Written):
    """A stream whose writes fail for a while."""

    error: Exception | None = None

    def write(self, text: str, /) -> int:
        """Write, or fail as a disk or a pipe does."""
        if self.error is not None:
            raise self.error
        return super().write(text)


def test_statistics_of_written_held_and_lost_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """The statistics count written, suppressed and lost lines, and a lost line raises nothing."""
    written = Failing()
    with set_up(LoggingSettings(repeats_max=2), written, now_ms=lambda: 0) as lines:
        assert lines.statistics() == LinesStatistics({}, 0, 0, "")
        for _ in range(5):
            log.warning("away")
        log.error("partition %d", "x")
        written.error = OSError(28, "No space left on device")
        log.error("lost")
        written.error = None
        assert lines.statistics() == LinesStatistics(
            {"warning": 2, "error": 1}, 3, 1, "OSError: [Errno 28] No space left on device"
        )
        log.error("found again")
    assert written.messages[-2:] == ["found again", "3 more within 60 s, not written: away"]
    assert lines.statistics().written == {"warning": 3, "error": 2}
    assert capsys.readouterr().err == ""


def test_statistics_when_the_stream_is_closed_then_count_what_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A standard error that was closed before the start, or is later, ends nothing."""
    with monkeypatch.context() as closed:
        closed.setattr("sys.stderr", None)
        with set_up(LoggingSettings()) as lines:
            log.error("lost")
        assert (lines.statistics().written, lines.statistics().failed) == ({}, 1)
    written = Written()
    with set_up(LoggingSettings(), written) as lines:
        log.error("one")
        written.close()
        log.error("lost")
        assert (lines.statistics().written, lines.statistics().failed) == ({"error": 1}, 1)
    assert "closed file" in lines.statistics().last_failure
    assert capsys.readouterr().err == ""


def test_line_when_it_answers_an_operator_then_is_never_held_back() -> None:
    """An answer to an operator is never suppressed, and its mark is not written."""
    written = Written()
    with logging_to(written, repeats_max=1):
        for number in range(3):
            log.error("asked %d", number, extra=ANSWER)
            log.error("came by itself %d", number)
    assert written.messages[:4] == ["asked 0", "came by itself 0", "asked 1", "asked 2"]
    assert set(written.objects[0]) == {"time", "level", "logger", "message"}
