"""What runs units of work elsewhere than in this process."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


class EngineUnfit(RlmmError):
    """No unit of work can run: Spark, its Java, its session or all its workers are not fit."""

    code = "engine-unfit"
    exit_code = 3
