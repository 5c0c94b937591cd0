"""
The journal of a topic's window: its step, and the topic's settings before it. Pure. An entry is
written before its change, so a step may have been done: the next job repeats it.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec.structs import replace

from rlmm.errors import InvalidArgument
from rlmm.metadata.ids import Uuid
from spark_tiering.adopt.settings import CHANGED
from spark_tiering.job_registry.ids import began_ms
from spark_tiering.job_registry.job_store import JobTopic, read_fields, record_bytes
from spark_tiering.layout.strict_json import Count64, JsonFault, typed_value

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
    """The settings are as they were."""


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


Text = Annotated[str, msgspec.Meta(max_length=TEXT_MAX)]


class AdoptionJournal(
    msgspec.Struct, frozen=True, rename="camel", tag_field="version", tag=VERSION
):
    """*before* has the topic's own settings, *log_starts* its log start offsets before it."""

    topic_name: Text = msgspec.field(name="topic")
    topic_id: Uuid
    cluster_id: Text
    generation: Count64
    """From 1, without a gap, over all windows of the topic."""
    step: AdoptionStep
    job_id: Text
    opened_ms: Count64
    """When the window was opened."""
    written_ms: Count64
    before: dict[Text, Text]
    log_starts: dict[Count64, Count64]
    trouble: Text

    @property
    def topic(self) -> JobTopic:
        return JobTopic(self.topic_name, self.topic_id)

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
    before, log_starts = sorted(journal.before.items()), sorted(journal.log_starts.items())
    return record_bytes(replace(journal, before=dict(before), log_starts=dict(log_starts)))


def parse_journal(content: bytes | None) -> AdoptionJournal | None:
    """Read a journal; None where this version cannot go on with it."""
    found = read_fields(content)
    if found is None or found.pop("version", None) != VERSION:
        return None
    try:
        journal = typed_value(found, AdoptionJournal)
    except JsonFault:
        return None
    is_ours = began_ms(journal.job_id) is not None and journal.before.keys() <= set(CHANGED)
    return journal if is_ours else None
