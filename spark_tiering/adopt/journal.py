"""
The journal of a topic's window: its step, and the topic's settings before it. Pure. An entry is
written before the change that it describes, so its step may have been done: the next job repeats
it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import INT64_MAX, Uuid
from spark_tiering.adopt.settings import CHANGED
from spark_tiering.job_registry.ids import began_ms
from spark_tiering.job_registry.job_store import JobTopic, fields_bytes, read_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION: Final = 1
TEXT_MAX: Final = 1_000


class AdoptionStep(StrEnum):
    """The step that is begun. A closed list; stored journals hold its values."""

    OPENING = "opening"
    """Step 2: copying and retention are being switched off."""
    OPEN = "open"
    """Steps 3 to 6: they are off, and copies are made."""
    CLOSING = "closing"
    """Step 7: copying is being switched on; no copy of a job is open, and none begins."""
    RESTORING = "restoring"
    """Step 8: copying is on and was seen to go on, retention is being restored."""
    CLOSED = "closed"
    """All is as it was."""


# An open window is closed at once where its topic is gone.
_NEXT: Final[Mapping[AdoptionStep, frozenset[AdoptionStep]]] = {
    AdoptionStep.OPENING: frozenset(
        {AdoptionStep.OPENING, AdoptionStep.OPEN, AdoptionStep.CLOSING, AdoptionStep.CLOSED}
    ),
    AdoptionStep.OPEN: frozenset({AdoptionStep.OPENING, AdoptionStep.CLOSING, AdoptionStep.CLOSED}),
    AdoptionStep.CLOSING: frozenset(
        {AdoptionStep.OPENING, AdoptionStep.CLOSING, AdoptionStep.RESTORING, AdoptionStep.CLOSED}
    ),
    AdoptionStep.RESTORING: frozenset({AdoptionStep.RESTORING, AdoptionStep.CLOSED}),
    AdoptionStep.CLOSED: frozenset({AdoptionStep.OPENING}),
}


@dataclass(frozen=True, slots=True)
class AdoptionJournal:
    """*before* has the topic's own settings, *log_starts* its log start offsets before it."""

    topic: JobTopic
    cluster_id: str
    generation: int
    """From 1, without a gap, over all windows of the topic."""
    step: AdoptionStep
    job_id: str
    opened_ms: int
    """When the window was opened."""
    written_ms: int
    before: Mapping[str, str]
    log_starts: Mapping[int, int]
    trouble: str = ""

    @property
    def is_open(self) -> bool:
        """Return whether settings of the topic may still be changed."""
        return self.step is not AdoptionStep.CLOSED

    def to(
        self, step: AdoptionStep, job_id: str, now_ms: int, trouble: str = ""
    ) -> AdoptionJournal:
        """Return the next entry; raises `InvalidArgument` for a step that cannot follow."""
        if step not in _NEXT[self.step]:
            msg = f"a window that is {self.step} is never {step} next"
            raise InvalidArgument(msg)
        return replace(
            self,
            generation=self.generation + 1,
            step=step,
            job_id=job_id,
            written_ms=now_ms,
            trouble=trouble[:TEXT_MAX],
        )


def format_journal(journal: AdoptionJournal) -> bytes:
    return fields_bytes(
        {
            "version": VERSION,
            "topic": journal.topic.name,
            "topicId": str(journal.topic.topic_id),
            "clusterId": journal.cluster_id,
            "generation": journal.generation,
            "step": journal.step.value,
            "jobId": journal.job_id,
            "openedMs": journal.opened_ms,
            "writtenMs": journal.written_ms,
            "before": dict(sorted(journal.before.items())),
            "logStarts": {str(at): start for at, start in sorted(journal.log_starts.items())},
            "trouble": journal.trouble,
        }
    )


def parse_journal(content: bytes | None) -> AdoptionJournal | None:
    """Read a journal; None where this version cannot go on with it."""
    found = read_fields(content)
    if found is None or found.get("version") != VERSION:
        return None
    try:
        return _journal(found)
    except (AttributeError, InvalidArgument, KeyError, TypeError, ValueError):
        return None


def _journal(found: Mapping[str, Any]) -> AdoptionJournal:
    before = found["before"].items()
    log_starts = [(int(at), start) for at, start in found["logStarts"].items()]
    texts = [found[name] for name in ("topic", "clusterId", "jobId", "trouble")]
    texts += [text for setting in before for text in setting]
    numbers = [found[name] for name in ("generation", "openedMs", "writtenMs")]
    numbers += [number for one in log_starts for number in one]
    if not all(isinstance(text, str) and len(text) <= TEXT_MAX for text in texts):
        raise ValueError
    if not all(type(number) is int and 0 <= number <= INT64_MAX for number in numbers):
        raise ValueError
    if began_ms(found["jobId"]) is None or any(name not in CHANGED for name, _ in before):
        raise ValueError
    return AdoptionJournal(
        JobTopic(found["topic"], Uuid.parse(found["topicId"])),
        found["clusterId"],
        found["generation"],
        AdoptionStep(found["step"]),
        found["jobId"],
        found["openedMs"],
        found["writtenMs"],
        dict(before),
        dict(log_starts),
        found["trouble"],
    )
