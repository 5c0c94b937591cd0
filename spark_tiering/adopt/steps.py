"""
Steps of a window: journalled changes, quiet metadata, ended copies, and checks of the brokers. A
change of settings is journalled first, and made only while the topic is this job's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError, LogNotPermitted, LogUnavailable, TopicBusy
from spark_tiering.adopt.outcomes import AdoptionRefusal, RefusedTopic
from spark_tiering.adopt.safety import QuietWatch, end_text, few, highest_tiered
from spark_tiering.adopt.settings import differences
from spark_tiering.copy_job.report import CopyFate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rlmm.metadata.ids import TopicIdPartition
    from spark_tiering.adopt.journal import AdoptionJournal, AdoptionStep
    from spark_tiering.adopt.protocols import AdoptionWindowActions
    from spark_tiering.adopt.safety import AdoptedPartition
    from spark_tiering.adopt.settings import SettingsChange
    from spark_tiering.copy_job.report import EndReceipt

CHANGES_MAX: Final = 3
"""How often a change is repeated whose outcome is unknown."""
ENDINGS_MAX: Final = 5


@dataclass(frozen=True, slots=True)
class WindowOptions:
    quiet_ms: int = 3_000
    """How long metadata must rest: one segment's upload where a plugin ignores interruptions."""
    quiet_max_ms: int = 600_000
    """How long that is waited for."""
    taken_up_ms: int = 60_000
    """How long brokers may take to go on behind the last copy."""
    settings_ms: int = 30_000
    """How long brokers may take to tell settings that were changed."""
    pause_ms: int = 200
    """The pause between two looks."""
    rounds_max: int = 20
    rest_bytes: int = 0
    """What may be left for the brokers to copy; segments go on being rolled meanwhile."""
    is_shrinking_allowed: bool = False
    """Whether a window that is taken up may lower retention to that of its journal."""

    def __post_init__(self) -> None:
        waits = (self.quiet_ms, self.quiet_max_ms, self.taken_up_ms, self.settings_ms)
        if min(waits) < 0 or min(self.pause_ms, self.rounds_max) < 1 or self.rest_bytes < 0:
            msg = f"a window cannot wait like this: {self}"
            raise ConfigError(msg)


class GivenUp(Exception):
    """Ends nested steps with a refusal, an outcome of the window; it never leaves the window."""

    def __init__(self, reason: AdoptionRefusal, detail: str) -> None:
        self.why = RefusedTopic(reason, detail)
        super().__init__(str(self.why))


class WindowSteps:
    def __init__(self, actions: AdoptionWindowActions, options: WindowOptions) -> None:
        self.journal: AdoptionJournal | None = None
        self._actions = actions
        self._options = options

    def begin(self, settings: Mapping[str, str], log_starts: Mapping[int, int]) -> None:
        """Write the first journal entry, with the settings from before."""
        journal = self._actions.first_journal(settings, log_starts)
        self.journal = journal
        try:
            self._actions.write(journal)
        except TopicBusy:
            self.journal = None
            raise

    def move(self, step: AdoptionStep, trouble: str = "") -> AdoptionJournal:
        assert self.journal is not None
        following = self.journal.to(step, self._actions.job_id, self._actions.now_ms(), trouble)
        self._actions.write(following)
        self.journal = following
        return following

    def require_ours(self) -> None:
        why = self._actions.why_not_ours()
        if why:
            raise GivenUp(AdoptionRefusal.NOT_OURS, why)

    def change(self, change: SettingsChange) -> None:
        """
        Change settings while the topic is ours and has the id of the journal. Raises `ConfigError`
        and `LogNotPermitted` where the cluster refuses.
        """
        for left in reversed(range(CHANGES_MAX)):
            self.require_ours()
            try:
                if self._actions.settings() is None:
                    raise GivenUp(AdoptionRefusal.NO_SUCH_TOPIC, "it is gone, or was made anew")
                self._actions.change(change)
            except LogUnavailable as error:
                if not left:
                    raise GivenUp(AdoptionRefusal.CHANGE_UNKNOWN, str(error)) from error
                self._pause()
            else:
                return

    def change_back(self, change: SettingsChange) -> None:
        """Change settings back in an open window, which stays open if the cluster refuses."""
        try:
            self.change(change)
        except (ConfigError, LogNotPermitted) as error:
            raise GivenUp(AdoptionRefusal.CHANGE_REFUSED, str(error)) from error

    def why_not_quiet(self, why_stop: Callable[[], str]) -> str:
        """Wait until the metadata is quiet; return why it is not, or nothing."""
        watch = QuietWatch(self._options.quiet_ms)
        began_ms = self._actions.elapsed_ms()
        while not (why := why_stop()):
            digests = {one.partition: one.digest for one in self._actions.look()}
            now_ms = self._actions.elapsed_ms()
            if watch.saw(now_ms, digests):
                return ""
            if now_ms - began_ms > self._options.quiet_max_ms:
                unread = few([str(one) for one in watch.unread])
                return f"no rest in {self._options.quiet_max_ms} ms" + (
                    f", not read: {unread}" if unread else ""
                )
            self._pause()
        return why

    def not_taken_up(self, seen: Sequence[AdoptedPartition]) -> list[str]:
        """Return the partitions whose leaders do not know of the last copy in time."""
        wanted = {
            one.partition: highest for one in seen if (highest := highest_tiered(one)) is not None
        }
        told: dict[TopicIdPartition, int] = {}
        began_ms = self._actions.elapsed_ms()
        while wanted:
            try:
                told = dict(self._actions.latest_tiered(list(wanted)))
            except LogUnavailable:
                told = {}
            wanted = {
                one: highest for one, highest in wanted.items() if told.get(one, -1) < highest
            }
            if not wanted or self._actions.elapsed_ms() - began_ms > self._options.taken_up_ms:
                break
            self._pause()
        return [
            f"{one} tells {told.get(one, 'nothing')}, the tier has {highest}"
            for one, highest in wanted.items()
        ]

    def other_settings(self, before: Mapping[str, str]) -> list[str]:
        began_ms = self._actions.elapsed_ms()
        while True:
            settings = self._actions.settings()
            found = [] if settings is None else differences(settings, before)
            if not found or self._actions.elapsed_ms() - began_ms > self._options.settings_ms:
                return found
            self._pause()

    def _pause(self) -> None:
        self._actions.wait(self._options.pause_ms / 1_000)

    def end_open(self, *, is_settling: bool) -> list[EndReceipt]:
        """End jobs' open copies, or raise `GivenUp`. *is_settling* waits for late events."""
        if is_settling:
            why = self.why_not_quiet(lambda: "")
            if why:
                raise GivenUp(AdoptionRefusal.NOT_QUIET, why)
        ended: list[EndReceipt] = []
        for _ in range(ENDINGS_MAX):
            ending = self._actions.end_open()
            ended += ending.ends
            left = [*ending.left]
            left += [end_text(one) for one in ending.ends if one.fate is not CopyFate.ENDED]
            if left:
                raise GivenUp(AdoptionRefusal.OPEN_COPIES, few(left))
            if not ending.ends:
                return ended
        raise GivenUp(AdoptionRefusal.OPEN_COPIES, "others go on beginning copies")
