"""Frame answers of one session: what the native core does not answer is left to the session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rlmm.metadata.core_panic import CorePanic
from rlmm.sidecar.frame_answers import FrameAnswers
from rlmm.sidecar.settings import SidecarSettings
from rlmm.sidecar.statistics import FrameServerCounters


def test_frame_when_the_native_core_panics_then_is_left_to_the_session() -> None:
    """A panic ends no connection: the session answers the frame, or refuses it by name."""

    def panicking(*_given: Any) -> None:
        raise CorePanic("planted")

    reads = SimpleNamespace(lookups=SimpleNamespace(answer=panicking), outcomes=None)
    session: Any = SimpleNamespace(known_reads=reads, meter=None)
    figures = FrameServerCounters()
    answers = FrameAnswers(session, SidecarSettings(), figures)
    answers.look()
    assert answers.answer(b"", 0.0) is None
    assert not any(figures.answered.values())
