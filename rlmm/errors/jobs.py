"""Why a job that copies segments does not begin."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


class PlanStale(RlmmError):
    """What the plan stands on has changed: nothing was done, make another one."""

    code = "plan-stale"
    exit_code = 2


class TopicBusy(RlmmError):
    """Another job works on the topic; the message names it, and when it is free at the latest."""

    code = "topic-busy"
    exit_code = 4
    retriable = True
