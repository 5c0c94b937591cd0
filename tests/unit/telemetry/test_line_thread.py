"""Lines of the log whose reader stands still, comes late, or goes."""

from __future__ import annotations

import io
import logging
import os
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import pytest

from rlmm.telemetry.line_thread import WAITING_BYTES_MAX, LineThread, line_thread
from rlmm.telemetry.logs import set_up
from rlmm.telemetry.settings import LoggingSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("rlmm.tests.lines")

LINE = f"{'x' * (WAITING_BYTES_MAX // 4 - 1)}\n"
"""Far longer than what a pipe holds."""
MOST = 4
SHORT_S = 0.01


@contextmanager
def pipe() -> Iterator[tuple[int, TextIO]]:
    """Yield the end that is read from, as a descriptor, and the one that is written to."""
    ours, theirs = os.pipe()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        try:
            yield ours, stream
        finally:
            os.close(ours)


def everything(ours: int, size: int) -> bytes:
    found = b""
    while len(found) < size:
        found += os.read(ours, size - len(found))
    return found


def test_lines_when_their_reader_stands_still_then_wait_or_are_counted() -> None:
    """No line keeps its caller; those without room are counted, all others are written later."""
    with pipe() as (ours, stream):
        writer = LineThread(stream)
        with set_up(LoggingSettings(repeats_max=1), writer) as lines:
            assert lines.wait_room()
            for _ in range(MOST):
                writer.write(LINE)
            assert not writer.wait_room(SHORT_S)
            with pytest.raises(BlockingIOError, match="their reader takes none"):
                writer.write(LINE)
            log.warning("lost %s", LINE)
            assert lines.statistics().failed == 1
            assert "their reader takes none" in lines.statistics().last_failure
            writer.end(SHORT_S)
            assert everything(ours, MOST * len(LINE)) == MOST * LINE.encode()
            lines.drain()
            assert lines.wait_room()
            assert lines.statistics().failed == 1


def test_lines_when_their_reader_has_gone_then_are_counted() -> None:
    """A line that was taken and cannot be written counts as failed, with the cause."""
    with pipe() as (ours, stream):
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, ours)
        os.close(nothing)
        writer = LineThread(stream)
        with set_up(LoggingSettings(), writer) as lines:
            log.warning("one")
            log.warning("two")
            lines.drain()
            assert (lines.statistics().failed, lines.statistics().last_failure) == (
                2,
                "BrokenPipeError: [Errno 32] Broken pipe",
            )


def test_lines_when_the_block_ends_then_are_written() -> None:
    """The end waits for the lines, which hold any characters."""
    with pipe() as (ours, stream):
        with line_thread(stream) as writer:
            assert writer is not None
            writer.write("one\n")
            writer.write("tw\udcff\n")
        assert os.read(ours, 100) == b"one\ntw\\udcff\n"


@pytest.mark.parametrize("stream", [None, io.StringIO()], ids=["closed", "no-file"])
def test_writer_when_there_is_no_file_then_is_none(stream: TextIO | None) -> None:
    """A standard error that was closed, or is none of the system's, has no writer."""
    with line_thread(stream) as writer:
        assert writer is None


def test_lines_when_their_reader_comes_late_then_who_waits_for_room_goes_on() -> None:
    """A caller that waits for room goes on as soon as the reader has taken half of the lines."""
    with pipe() as (ours, stream):
        writer = LineThread(stream)
        for _ in range(MOST):
            writer.write(LINE)
        reader = threading.Thread(target=everything, args=(ours, MOST * len(LINE)))
        reader.start()
        assert writer.wait_room(60)
        reader.join()
        writer.end()
