"""The protocol of one topic's window: everything that reaches outside, and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.adopt.journal import AdoptionJournal
    from spark_tiering.adopt.safety import AdoptedPartition
    from spark_tiering.adopt.settings import SettingsChange
    from spark_tiering.copy_job.report import CopyReceipt, EndReceipt
    from spark_tiering.segment_sources.cluster import TopicSettingInForce


class RoundPreview(NamedTuple):
    """Copies that a round would make now; *why_nothing* says why there are none."""

    copies: int
    why_nothing: str = ""


class AdoptionRound(NamedTuple):
    """The outcome of one plan within a window; *stopped* says why not all of it was begun."""

    receipts: tuple[CopyReceipt, ...]
    ends: tuple[EndReceipt, ...]
    stopped: str = ""


class OpenCopiesResult(NamedTuple):
    """The outcome of copies that were open; *left* names those of jobs that still are."""

    ends: tuple[EndReceipt, ...]
    left: tuple[str, ...] = ()


class AdoptionWindowActions(Protocol):
    """
    Everything that one topic's window needs outside the driver; for one thread. A call that raises
    `RlmmError` may have made its change.
    """

    @property
    def job_id(self) -> str: ...

    def now_ms(self) -> int: ...

    def elapsed_ms(self) -> int:
        """Return a clock that does not step."""

    def wait(self, seconds: float) -> None: ...

    def why_stop(self) -> str:
        """Return why copying is to end, empty while there is no reason; windows are closed then."""

    def why_not_ours(self) -> str:
        """Ask the store why the topic is not this job's any more; empty while it is."""

    def journal(self) -> AdoptionJournal | None:
        """Return the newest entry; None where no window was ever opened."""

    def first_journal(
        self, settings: Mapping[str, str], log_starts: Mapping[int, int]
    ) -> AdoptionJournal:
        """Return the first entry of a new window; it is not stored."""

    def write(self, journal: AdoptionJournal) -> None:
        """Store the next entry; raises `TopicBusy` where another job has written one."""

    def settings(self) -> Mapping[str, TopicSettingInForce] | None:
        """Return the settings of the topic; None where there is no such topic any more."""

    def change(self, change: SettingsChange, *, is_only_checked: bool = False) -> None:
        """Change all or none; `ConfigError`, `LogNotPermitted` where the cluster refused."""

    def why_too_old(self) -> str:
        """Return why a broker does not tell its highest tiered offset; empty where all do."""

    def latest_tiered(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, int]:
        """Return the highest offset that each leader knows to be tiered, -1 for none."""

    def look(self) -> tuple[AdoptedPartition, ...]:
        """Read every partition of the topic."""

    def preview(self) -> RoundPreview:
        """Return the copies of a round, without changing anything."""

    def hindrances(self) -> tuple[str, ...]:
        """Return the segments of the newest plan that an operator has to look at."""

    def copy_round(self, rest_bytes: int) -> AdoptionRound | None:
        """Plan and copy; return None, with nothing done, where at most *rest_bytes* are left."""

    def end_open(self) -> OpenCopiesResult:
        """End every open copy of this job and of jobs that are over, from the top down."""
