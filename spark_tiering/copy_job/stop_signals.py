"""
Whatever asks a job to stop between segments: a file on the driver's machine, a marker in the store
that `rlmm tier pause` writes, a signal, a deadline. What is on its way is finished first.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from rlmm.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_log = logging.getLogger("spark_tiering.run.stopping")

PAUSE_AGE_S = 5.0
"""How old the answer about the marker may be: asking for it is a request to the store."""


class StopSignals:
    """Reasons to stop, looked for between copies; the first one stays."""

    def __init__(
        self,
        now_s: Callable[[], float],
        *,
        stop_file: Path | None = None,
        is_paused: Callable[[], bool] | None = None,
        deadline_s: float | None = None,
        why_stop: Callable[[], str] = lambda: "",
    ) -> None:
        """*why_stop* are the caller's reasons: signals of the system above all."""
        self._ask = why_stop
        self._now_s = now_s
        self._stop_file = stop_file
        self._is_paused = is_paused
        self._deadline_s = deadline_s
        self._asked_s = float("-inf")
        self._why = ""

    def ask_to_stop(self, why: str) -> None:
        self._why = self._why or why

    def why_stop(self) -> str:
        """Return why to stop; empty while there is no reason."""
        self._why = self._why or self._look()
        return self._why

    def _look(self) -> str:
        now_s = self._now_s()
        if why := self._ask():
            return why
        if self._stop_file is not None and self._stop_file.exists():
            return "stop-file"
        if self._deadline_s is not None and now_s >= self._deadline_s:
            return "time-is-up"
        if self._is_paused is not None and now_s - self._asked_s >= PAUSE_AGE_S:
            self._asked_s = now_s
            return "paused" if self._is_marked(self._is_paused) else ""
        return ""

    def _is_marked(self, is_paused: Callable[[], bool]) -> bool:
        """A store that does not answer is no reason to stop: copies find out for themselves."""
        try:
            return is_paused()
        except StoreError as error:
            _log.info("nobody can say whether the job is paused: %s", error)
            return False
