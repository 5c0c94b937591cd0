"""Counters of served and refused reads of broker files."""

from __future__ import annotations

from collections import Counter
from typing import Final

REFUSALS: Final = ("absent", "busy", "disk", "not-sealed", "range", "stable-offset-unknown")
"""Why: no such file; too much at once; a disk that does not answer, or a file that we may not open;
not rolled, or not stable; bytes that the file does not have; the last stable offset is unknown."""
CUT_SHORT: Final = ("changed", "disk", "slow")
"""Why: the file is gone, or another one; the disk did not answer; the client did not read."""


class BrokerFilesCounters:
    def __init__(self) -> None:
        self.sent_bytes = 0
        """Written to the system's buffers; a client may have gone before they arrived."""
        self.files = 0
        """Answers with a file, or a part of one, that were begun."""
        self.under_way = 0
        self.cut_short: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.questions = 0
        self.questions_failed = 0
