"""The opening of an engine, from settings or from a session that is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import EngineUnfit
from spark_tiering.execution.in_process import InProcess

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from spark_tiering.execution.protocol import ExecutionEngine
    from spark_tiering.execution.settings import ExecutionSettings


def open_engine(
    settings: ExecutionSettings, session: SparkSession | None = None
) -> ExecutionEngine:
    """Return an engine; `ConfigError` against spark-submit, `EngineUnfit` without Spark."""
    if session is None and settings.master is None:
        return InProcess(settings.slots)
    # Large, and not needed where nothing is run on Spark.
    try:
        import pyspark  # noqa: F401, PLC0415
    except ImportError as error:
        msg = "Spark is not installed: pip install 'rlmm[spark]', and 'rlmm[java]' without a Java; "
        msg += "or use --no-spark, which needs neither"
        raise EngineUnfit(msg) from error
    from spark_tiering.execution.session import open_session  # noqa: PLC0415

    if session is not None:
        return engine_over(session)
    opened = open_session(settings)
    return engine_over(opened.spark, opened.close)


def engine_over(session: SparkSession, end: Callable[[], None] | None = None) -> ExecutionEngine:
    """Return the engine that a session can have; *end* is done when it is closed."""
    from spark_tiering.execution.arrow import ArrowJobs, is_connect  # noqa: PLC0415
    from spark_tiering.execution.rdd import RddJobs  # noqa: PLC0415
    from spark_tiering.execution.spark_engine import SparkEngine  # noqa: PLC0415

    if is_connect(session):
        return SparkEngine(ArrowJobs(session), end)
    return SparkEngine(RddJobs(session.sparkContext), end)
