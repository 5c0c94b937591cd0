"""The window of one topic in its order: opened, copied in, closed; or taken up as it was left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError, LogNotPermitted, RlmmError, TopicBusy
from spark_tiering.adopt.journal import AdoptionStep
from spark_tiering.adopt.outcomes import AdoptionRefusal, RefusedTopic, TopicOutcome, TopicStatus
from spark_tiering.adopt.safety import copied_twice, end_text, few, moved_starts, why_not_enabled
from spark_tiering.adopt.settings import (
    enabling_change,
    explicitly_set,
    is_copying_disabled,
    opening_change,
    restoring_change,
    shrinking,
    why_not,
)
from spark_tiering.adopt.steps import GivenUp, WindowOptions, WindowSteps
from spark_tiering.copy_job.publishing import PublishFailure
from spark_tiering.copy_job.report import CopyFate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from spark_tiering.adopt.protocols import AdoptionRound, AdoptionWindowActions, RoundPreview
    from spark_tiering.adopt.safety import AdoptedPartition
    from spark_tiering.copy_job.report import CopyReceipt, EndReceipt

_LOOKS_MAX: Final = 3
_IF_RIGHT: Final = (
    "nothing was changed: compare with what the topic had, then say --allow-shrinking-retention"
)
_NOBODY_COPIES: Final = "brokers did not go on behind the last copies"


class AdoptionWindow:
    def __init__(
        self, topic: str, actions: AdoptionWindowActions, options: WindowOptions | None = None
    ) -> None:
        self._topic = topic
        self._actions = actions
        self._options = options or WindowOptions()
        self._steps = WindowSteps(actions, self._options)
        self._receipts: list[CopyReceipt] = []
        self._ends: list[EndReceipt] = []
        self._findings: list[str] = []
        self._rounds = 0
        self._stopped = ""
        self._is_settling = False
        """Whether events of others, or ones of ours whose outcome is unknown, may still come."""

    def adopt(self) -> TopicOutcome:
        """Do all nine steps; a topic that is refused is not changed at all."""
        return self._outcome_of(self._adopt)

    def resume(self) -> TopicOutcome:
        """Take up a window: copy the rest unless it was closing, and close it."""
        return self._outcome_of(lambda: self._take_up(is_aborted=False))

    def abort(self) -> TopicOutcome:
        """Take up a window: end open copies, copy nothing more, and close it."""
        return self._outcome_of(lambda: self._take_up(is_aborted=True))

    def _outcome_of(self, way: Callable[[], TopicOutcome]) -> TopicOutcome:
        try:
            return way()
        except GivenUp as given_up:
            why = given_up.why
        except TopicBusy as error:
            why = RefusedTopic(AdoptionRefusal.NOT_OURS, str(error))
        except RlmmError as error:
            why = RefusedTopic(AdoptionRefusal.TROUBLE, f"{error.code}: {error}")
        journal = self._steps.journal
        is_open = journal is not None and journal.is_open
        return self._outcome(TopicStatus.LEFT_OPEN if is_open else TopicStatus.REFUSED, why)

    def _outcome(self, standing: TopicStatus, why: RefusedTopic | None = None) -> TopicOutcome:
        journal = self._steps.journal
        return TopicOutcome(
            self._topic,
            standing,
            why,
            tuple(self._receipts),
            tuple(self._ends),
            self._rounds,
            0 if journal is None else max(0, self._actions.now_ms() - journal.opened_ms),
            self._stopped,
            tuple(self._findings),
        )

    def _refused(self, reason: AdoptionRefusal, detail: str) -> TopicOutcome:
        return self._outcome(TopicStatus.REFUSED, RefusedTopic(reason, detail))

    def _adopt(self) -> TopicOutcome:
        newest = self._actions.journal()
        if newest is not None and newest.is_open:
            detail = f"job {newest.job_id} left it {newest.step}: resume or abort it"
            return self._refused(AdoptionRefusal.WINDOW_OPEN, detail)
        settings = self._actions.settings()
        refused = why_not(settings)
        if refused is not None or settings is None:
            return self._outcome(TopicStatus.REFUSED, refused)
        too_old = self._actions.why_too_old()
        if too_old:
            return self._refused(AdoptionRefusal.BROKER_TOO_OLD, too_old)
        seen, refused = self._looked()
        if refused is not None:
            return self._outcome(TopicStatus.REFUSED, refused)
        preview = self._previewed()
        if not preview.copies:
            if preview.why_nothing:
                return self._refused(AdoptionRefusal.NOT_AT_NEXT_OFFSET, preview.why_nothing)
            self._findings += self._actions.hindrances()
            return self._outcome(TopicStatus.NOTHING_TO_DO)
        try:
            self._actions.change(opening_change(), is_only_checked=True)
        except (ConfigError, LogNotPermitted) as error:
            return self._refused(AdoptionRefusal.CHANGE_REFUSED, str(error))
        starts = {
            one.partition.partition: one.log_start for one in seen if one.log_start is not None
        }
        self._steps.begin(explicitly_set(settings), starts)
        try:
            self._steps.change(opening_change())
        except (ConfigError, LogNotPermitted) as error:
            self._steps.move(AdoptionStep.CLOSED)  # it was surely not made
            return self._refused(AdoptionRefusal.CHANGE_REFUSED, str(error))
        return self._copy_and_close()

    def _looked(self) -> tuple[Sequence[AdoptedPartition], RefusedTopic | None]:
        seen = self._actions.look()
        for _ in range(_LOOKS_MAX - 1):
            if _why_not_enabled(seen) is None:
                break
            # Retention may have moved a log's start after it was asked for: then it looks so once.
            self._actions.wait(self._options.pause_ms / 1_000)
            seen = self._actions.look()
        return seen, _why_not_enabled(seen)

    def _previewed(self) -> RoundPreview:
        """Return the copies of a round; look again while something is in the way of all of them."""
        preview = self._actions.preview()
        for _ in range(_LOOKS_MAX - 1):
            if preview.copies or not (preview.why_nothing or self._actions.hindrances()):
                break
            # Brokers still copy and delete: a segment that was listed may be gone when it is read.
            self._actions.wait(self._options.pause_ms / 1_000)
            preview = self._actions.preview()
        return preview

    def _take_up(self, *, is_aborted: bool) -> TopicOutcome:
        newest = self._actions.journal()
        if newest is None or not newest.is_open:
            return self._refused(AdoptionRefusal.NO_WINDOW, "none is open")
        self._steps.journal = newest
        settings = self._actions.settings()
        if settings is None:
            self._steps.move(AdoptionStep.CLOSED, "the topic is gone")
            self._findings.append("the topic is gone: there was nothing to restore")
            return self._outcome(TopicStatus.ABORTED)
        lowered = shrinking(settings, newest.before)
        if lowered and not self._options.is_shrinking_allowed:
            # Any writer of the store can write a journal: nothing proves these settings.
            raise GivenUp(AdoptionRefusal.RETENTION_SHRINKS, f"{'; '.join(lowered)}; {_IF_RIGHT}")
        if newest.step is AdoptionStep.RESTORING:
            return self._restore(TopicStatus.ADOPTED)
        # Where copying was never switched off, or is on again, brokers do not come to rest; and
        # no event can come late that the end of what is open would not have found.
        self._is_settling = is_copying_disabled(settings)
        if newest.step is AdoptionStep.CLOSING or is_aborted:
            return self._close(TopicStatus.ABORTED if is_aborted else TopicStatus.ADOPTED)
        self._steps.move(AdoptionStep.OPENING)
        self._is_settling = True
        self._steps.change_back(opening_change())
        return self._copy_and_close()

    def _copy_and_close(self) -> TopicOutcome:
        self._steps.move(AdoptionStep.OPEN)
        try:
            self._stopped = self._steps.why_not_quiet(self._actions.why_stop)
            if not self._stopped:
                self._copy()
        except TopicBusy:
            raise
        except RlmmError as error:
            # What can be copied no more may still be closed.
            self._stopped = f"{error.code}: {error}"
            self._is_settling = True
        self._findings += self._actions.hindrances()
        return self._close(TopicStatus.ADOPTED)

    def _copy(self) -> None:
        # What is rolled while the last round copies is left to the brokers.
        while self._rounds < self._options.rounds_max:
            self._stopped = self._actions.why_stop()
            if self._stopped:
                return
            rest_bytes = self._options.rest_bytes if self._rounds else 0
            found = self._actions.copy_round(rest_bytes)
            if found is None:
                return
            self._rounds += 1
            self._take(found)
            if self._stopped:
                return

    def _take(self, found: AdoptionRound) -> None:
        self._receipts += found.receipts
        self._ends += found.ends
        reasons = [*(one.why for one in found.receipts), *(one.detail for one in found.ends)]
        if any(PublishFailure.UNKNOWN.value in why for why in reasons):
            self._is_settling = True
        self._stopped = found.stopped
        is_of_use = any(one.fate is CopyFate.FINISHED for one in found.receipts)
        is_of_use = is_of_use or any(one.fate is CopyFate.ENDED for one in found.ends)
        if not self._stopped and not is_of_use:
            self._stopped = "a round of copies finished nothing"

    def _close(self, standing: TopicStatus) -> TopicOutcome:
        self._steps.require_ours()
        self._ends += self._steps.end_open(is_settling=self._is_settling)
        seen = self._actions.look()
        refused = _why_not_enabled(seen)
        if refused is not None:
            raise GivenUp(*refused)
        before = self._steps.move(AdoptionStep.CLOSING).before
        self._steps.change_back(enabling_change(before))
        late = self._steps.not_taken_up(seen)
        if late:
            self._open_again(f"within {self._options.taken_up_ms} ms: {few(late)}")
        self._look_after(seen)
        return self._restore(standing)

    def _open_again(self, detail: str) -> None:
        self._steps.move(AdoptionStep.OPENING, f"{_NOBODY_COPIES} {detail}")
        self._steps.change_back(opening_change())
        self._steps.move(AdoptionStep.OPEN, f"{_NOBODY_COPIES} {detail}")
        raise GivenUp(AdoptionRefusal.NOT_TAKEN_UP, detail)

    def _look_after(self, before: Sequence[AdoptedPartition]) -> None:
        """Add findings now that brokers copy again; nothing expires yet."""
        assert self._steps.journal is not None
        try:
            late = self._actions.end_open()
            seen = self._actions.look()
        except RlmmError as error:
            self._findings.append(f"the checks after the window failed: {error.code}: {error}")
            return
        self._ends += late.ends
        self._findings += [f"it was begun too late: {end_text(one)}" for one in late.ends]
        self._findings += [f"it was begun too late: {text}" for text in late.left]
        self._findings += moved_starts(seen, self._steps.journal.log_starts)
        ours = {one.uuid for one in self._receipts}
        self._findings += copied_twice(before, seen, ours)

    def _restore(self, standing: TopicStatus) -> TopicOutcome:
        before = self._steps.move(AdoptionStep.RESTORING).before
        self._steps.change_back(restoring_change(before))
        other = self._steps.other_settings(before)
        self._findings += [f"a setting is not as it was: {text}" for text in other]
        self._steps.move(AdoptionStep.CLOSED)
        return self._outcome(standing)


def _why_not_enabled(seen: Sequence[AdoptedPartition]) -> RefusedTopic | None:
    reasons = (why_not_enabled(one) for one in seen)
    return next((reason for reason in reasons if reason is not None), None)
