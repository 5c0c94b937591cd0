"""
Frame answers of one session: usual look-ups, from the bytes of a frame to those of its answer.

The native core reads, looks up and packs in one call. Invariant: its frames have the bytes that
`ClientSession.answer` would be answered with, and are counted as those are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.metadata.core_panic import CorePanic
from rlmm.sidecar.dispatch import RequestLimits

if TYPE_CHECKING:
    from rlmm.gate.frame_lookups import AnswerFrame
    from rlmm.gate.statistics import QuestionOutcomes
    from rlmm.sidecar.session import ClientSession
    from rlmm.sidecar.settings import SidecarSettings
    from rlmm.sidecar.statistics import FrameServerCounters


class FrameAnswers:
    __slots__ = (
        "_answer", "_answer_bytes_max", "_figures", "_lookups_max", "_outcomes", "_session",
    )  # fmt: skip

    def __init__(
        self, session: ClientSession, settings: SidecarSettings, figures: FrameServerCounters
    ) -> None:
        limits = RequestLimits.of(settings)
        self._session = session
        self._figures = figures
        self._lookups_max = limits.lookups_max
        self._answer_bytes_max = limits.answer_bytes_max
        self._answer: AnswerFrame | None = None
        self._outcomes: QuestionOutcomes | None = None

    def answer(self, data: bytes, now_s: float) -> bytes | None:
        """Return the frame that answers the frame *data*; `None`: the session has to answer it."""
        answer = self._answer
        if answer is None:
            return None
        try:
            found = answer(data, now_s, self._lookups_max, self._answer_bytes_max)
        except CorePanic:
            return None  # what is left of the core is met by the session, and refused there
        if found is None:
            return None
        frame, method, lookups = found
        self._figures.answered[method] += 1
        self._outcomes.answered += lookups  # type: ignore[union-attr]  # set with the function
        return frame

    def look(self) -> None:
        """Note the session's rights as they are now, after it has answered a frame itself."""
        reads, session = self._session.known_reads, self._session
        if reads is None or session.meter is not None:
            self._answer = None
        else:
            self._answer, self._outcomes = reads.lookups.answer, reads.outcomes
