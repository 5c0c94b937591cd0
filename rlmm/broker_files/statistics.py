"""Counters of served and refused reads of broker files."""

from __future__ import annotations

from collections import Counter
from typing import Final

REFUSALS: Final = ("absent", "busy", "disk", "not-sealed", "range", "stable-offset-unknown")
"""Why: no such file; too much at once; a disk that does not answer, or a file that we may not open;
not rolled, or not stable; bytes that the file does not have; nobody told what is stable."""
CUT_SHORT: Final = ("changed", "disk", "slow")
"""Why: the file is gone, or another one; the disk did not answer; the client did not read."""


class BrokerFilesCounters:
    """Counters of one server since its start; requests in progress are a gauge."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        """Of files, to the system's buffers: a client may have gone away before they arrived."""
        self.files = 0
        """Answers with a file, or a part of one, that were begun."""
        self.under_way = 0
        """Of these, those that have not ended."""
        self.cut_short: Counter[str] = Counter()
        """Answers with less than they promised, by reason."""
        self.refused: Counter[str] = Counter()
        """Requests for files that were refused, by reason."""
        self.questions = 0
        """How often the cluster was asked for a last stable offset."""
        self.questions_failed = 0
        """How often it did not tell."""
