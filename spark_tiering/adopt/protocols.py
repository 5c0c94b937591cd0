"""What the window of one topic works with: everything that reaches outside, and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.adopt.journal import AdoptionJournal
    from spark_tiering.adopt.safety import AdoptedPartition
    from spark_tiering.adopt.settings import SettingsChange
    from spark_tiering.copy_job.receipts import CopyReceipt, EndReceipt
    from spark_tiering.segment_sources.cluster import TopicSettingInForce


class RoundPreview(NamedTuple):
    """What a round would copy now; *why_nothing* says why not, where it would copy nothing."""

    copies: int
    why_nothing: str = ""


class AdoptionRound(NamedTuple):
    """What became of one plan within a window; *stopped* says why not all of it was begun."""

    receipts: tuple[CopyReceipt, ...]
    ends: tuple[EndReceipt, ...]
    stopped: str = ""


class OpenCopiesResult(NamedTuple):
    """What became of the copies that were open; *left* names those of jobs that still are."""

    ends: tuple[EndReceipt, ...]
    left: tuple[str, ...] = ()


class AdoptionWindowActions(Protocol):
    """
    One topic, to who opens and closes its window. For one thread.

    Every call that reaches outside raises `RlmmError`: then what it was to do may have been done.
    """

    @property
    def job_id(self) -> str: ...

    # ----------------------------------------------------------------------------------- time

    def now_ms(self) -> int: ...

    def elapsed_ms(self) -> int:
        """A clock that does not step."""

    def wait(self, seconds: float) -> None: ...

    def why_stop(self) -> str:
        """Why copying is to end, empty while there is no reason; windows are closed then."""

    # ---------------------------------------------------------------------------- the journal

    def why_not_ours(self) -> str:
        """Why the topic is not this job's any more, empty while it is; the store is asked."""

    def journal(self) -> AdoptionJournal | None:
        """The newest entry; None where no window was ever opened."""

    def first_journal(
        self, settings: Mapping[str, str], log_starts: Mapping[int, int]
    ) -> AdoptionJournal:
        """The first entry of a new window; not written yet."""

    def write(self, journal: AdoptionJournal) -> None:
        """Keep the next entry; `TopicBusy` where another job has written one."""

    # ---------------------------------------------------------------------------- the cluster

    def settings(self) -> Mapping[str, TopicSettingInForce] | None:
        """What is set for the topic; None where there is no such topic (any more)."""

    def change(self, change: SettingsChange, *, is_only_checked: bool = False) -> None:
        """
        Change settings, all or none.

        Raises `ConfigError` and `LogNotPermitted` where that was surely not done and never will be.
        """

    def why_too_old(self) -> str:
        """Why a broker does not tell what it knows to be tiered, empty where all do."""

    def latest_tiered(
        self, partitions: Collection[TopicIdPartition]
    ) -> Mapping[TopicIdPartition, int]:
        """The highest offset that the leader of each knows to be tiered, -1 for none."""

    # ------------------------------------------------------------------- metadata and copies

    def look(self) -> tuple[AdoptedPartition, ...]:
        """Every partition of the topic."""

    def preview(self) -> RoundPreview:
        """What a round would copy now; nothing is changed."""

    def hindrances(self) -> tuple[str, ...]:
        """What the newest plan leaves out until somebody has looked at it; nothing is asked."""

    def copy_round(self, rest_bytes: int) -> AdoptionRound | None:
        """Plan and copy; None, and nothing done, where at most *rest_bytes* are left to copy."""

    def end_open(self) -> OpenCopiesResult:
        """End every open copy of this job and of those that are over, from the top down."""
