"""The configuration is read again: whatever comes of it, the service goes on."""

from __future__ import annotations

import asyncio
import io
import os
import signal
import threading
from typing import TYPE_CHECKING, cast

import pytest

from rlmm.base.threads import left_behind
from rlmm.cli.service.config_reload import READ_S_MAX, RELOAD_SIGNAL, ConfigReload, EarlySignals
from rlmm.config.loading import load
from rlmm.telemetry.logs import LogLines, set_up
from rlmm.telemetry.settings import LogFormat, LoggingSettings
from tests.support.engines import until
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rlmm.cli.common.config_options import ConfigurationSources
    from rlmm.config.loading import LoadedConfiguration

DEADLINE_S = 30.0
"""Never reached, unless something is broken."""
NOTHING = "the configuration was read again, and nothing changes: "
SETTINGS = LoggingSettings(format=LogFormat.JSON, repeats_max=1)


class Said:
    """A configuration with the result of *load*."""

    def __init__(self, load: Callable[[], LoadedConfiguration]) -> None:
        self.load = load


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def lines(stream: io.StringIO) -> Iterator[LogLines]:
    with set_up(SETTINGS, stream, now_ms=lambda: 0) as lines:
        yield lines


def reloading(
    load_again: Callable[[], LoadedConfiguration],
    lines: LogLines,
    early: EarlySignals | None = None,
) -> ConfigReload:
    return ConfigReload(cast("ConfigurationSources", Said(load_again)), load(), lines, early=early)


@pytest.mark.parametrize("error", [ValueError("no number"), RecursionError("deep"), KeyError("x")])
def test_reload_when_reading_fails_in_a_way_of_its_own_then_is_told_each_time(
    error: Exception, stream: io.StringIO, lines: LogLines
) -> None:
    """A failed reload leaves the service running, and each failure is reported."""

    def broken() -> LoadedConfiguration:
        raise error

    async def ask() -> None:
        again = reloading(broken, lines)
        for _ in range(12):
            await again.read_again()

    asyncio.run(ask())
    assert stream.getvalue().count(f"{NOTHING}{type(error).__name__}: ") == 12


def test_reload_when_the_file_hangs_then_is_given_up_and_named(
    stream: io.StringIO, lines: LogLines
) -> None:
    """A reload gives up a pipe without a writer, and starts no second thread."""
    released, loads = threading.Event(), []

    def hanging() -> LoadedConfiguration:
        loads.append(1)
        assert released.wait(DEADLINE_S)
        return load()

    async def ask() -> None:
        again = reloading(hanging, lines)
        await again.read_again()
        assert left_behind() == ["configuration"]
        await again.read_again()

    try:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            runner.run(ask())
    finally:
        released.set()
    assert f"{NOTHING}it could not be read within {READ_S_MAX:g} s" in stream.getvalue()
    assert f"{NOTHING}it still hangs from the last time" in stream.getvalue()
    assert loads == [1]


def test_reload_when_asked_for_before_anybody_could_then_is_done_as_soon_as_one_can(
    stream: io.StringIO, lines: LogLines
) -> None:
    """Between the first reading and the start the file may have changed."""
    before = signal.getsignal(RELOAD_SIGNAL)
    early = EarlySignals()

    async def serve() -> None:
        again = reloading(load, lines, early)
        with again.heeding():
            running = asyncio.create_task(again.run())
            await until(lambda: "was read again" in stream.getvalue(), DEADLINE_S)
            running.cancel()
            await asyncio.wait([running])

    try:
        early.remember()
        os.kill(os.getpid(), RELOAD_SIGNAL)
        asyncio.run(serve())
    finally:
        signal.signal(RELOAD_SIGNAL, before)
    assert stream.getvalue().count("the configuration was read again") == 1
