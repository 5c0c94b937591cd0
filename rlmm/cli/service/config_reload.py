"""
Reload of the configuration on SIGHUP: the service applies `logging.*` while it runs. Other changes
need a restart and are named in a log line. A configuration that cannot be loaded, and a file that
hangs, change nothing. Every reload writes a result.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING

from rlmm.base.log_context import ANSWER
from rlmm.base.threads import in_own_thread, left_behind
from rlmm.config.loading import DEFAULT
from rlmm.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType

    from rlmm.cli.common.config_options import ConfigurationSources
    from rlmm.config.loading import ConfigurationValue, LoadedConfiguration
    from rlmm.telemetry.logs import LogLines

_log = logging.getLogger(__name__)

RELOAD_SIGNAL = signal.SIGHUP
_SECTION = "logging"
_THREAD = "configuration"
READ_S_MAX = 10.0
"""Longest time that reading may take: a named pipe, or a server that is away, hangs for ever."""


class EarlySignals:
    """Records a SIGHUP that arrives before the service can handle it."""

    def __init__(self) -> None:
        self.has_come = False

    def remember(self) -> None:
        """Record the signal until `ConfigReload` takes over."""
        signal.signal(RELOAD_SIGNAL, self._note)

    def _note(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.has_come = True


class ConfigReload:
    """Loads the configuration again on request, as long as `run` runs."""

    def __init__(
        self,
        sources: ConfigurationSources,
        configuration: LoadedConfiguration,
        lines: LogLines,
        look: Callable[[], None] | None = None,
        telling: Callable[[], AbstractContextManager[None]] = nullcontext,
        early: EarlySignals | None = None,
    ) -> None:
        """
        Keep the *configuration* of the start. *look* makes other components read their files again,
        *telling* is entered at each reload, for the supervisor, and *early* knows of an earlier
        signal.
        """
        self._sources = sources
        self._started_with = configuration
        self._lines = lines
        self._look = look
        self._telling = telling
        self._early = early
        self._asked = asyncio.Event()

    @contextmanager
    def heeding(self) -> Iterator[None]:
        """Handle the signal inside the block; ignore it afterwards."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(RELOAD_SIGNAL, self._asked.set)
        if self._early is not None and self._early.has_come:
            self._asked.set()
        try:
            yield
        finally:
            loop.remove_signal_handler(RELOAD_SIGNAL)
            signal.signal(RELOAD_SIGNAL, signal.SIG_IGN)

    async def run(self) -> None:
        """Reload after each signal, until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            with self._telling():
                if self._look is not None:
                    self._look()
                await self.read_again()

    async def read_again(self) -> None:
        """Apply changes of `logging.*`, and name changes that need a restart."""
        found = await self._read()
        if isinstance(found, str):
            _log.error(
                "the configuration was read again, and nothing changes: %s", found, extra=ANSWER
            )
            return
        settings = found.config.logging
        self._lines.change(settings)
        _log.info(
            "the configuration was read again: the log level is %s, of modules %s",
            settings.level,
            ", ".join(settings.levels) or "none of their own",
            extra=ANSWER,
        )
        for notice in found.notices:
            _log.warning("%s", notice, extra=ANSWER)
        others = changed_keys(self._started_with, found)
        if others:
            _log.warning(
                "these keys have changed and need a restart: %s", ", ".join(others), extra=ANSWER
            )

    async def _read(self) -> LoadedConfiguration | str:
        if _THREAD in left_behind():
            return "it still hangs from the last time"
        try:
            async with asyncio.timeout(READ_S_MAX):
                return await in_own_thread(_THREAD, self._sources.load)
        except ConfigError as error:
            return str(error)
        except TimeoutError:
            return f"it could not be read within {READ_S_MAX:g} s"
        except Exception as error:  # noqa: BLE001 - a file must not end what serves
            return " ".join(f"{type(error).__name__}: {error}".split())


def changed_keys(before: LoadedConfiguration, after: LoadedConfiguration) -> list[str]:
    """Return changed keys that need a restart; keys of one side only count if they were set."""
    old, new = _not_taken_over(before), _not_taken_over(after)
    found = [
        path for path, setting in new.items() if path in old and old[path].value != setting.value
    ]
    for sides in ((new, old), (old, new)):
        only = sides[0].keys() - sides[1].keys()
        found += sorted(path for path in only if sides[0][path].source != DEFAULT)
    return found


def _not_taken_over(loaded: LoadedConfiguration) -> dict[str, ConfigurationValue]:
    return {found.path: found for found in loaded.settings if found.key.section != _SECTION}
