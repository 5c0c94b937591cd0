"""Causes of failed jobs, from the output of Spark and Java."""

from __future__ import annotations

import pytest

from spark_tiering.execution.failure_causes import cause_of, last_said

IN_A_WORKER = """\
An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 1 in stage 5.0 failed 4 \
times, most recent failure: Lost task 1.3 in stage 5.0 (TID 9) (here executor driver): \
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 2033, in main
    process()
    ~~~~~~~^^
  File "in_task.py", line 50, in carry_out
    raise ValueError(1)
ValueError: 1

The above exception was the direct cause of the following exception:

Traceback (most recent call last):
  File "in_task.py", line 53, in carry_out
    raise EngineUnfit(msg) from error
{last}

\tat org.apache.spark.api.python.BasePythonRunner$ReaderIterator.handlePythonException(Py.scala:1)
Caused by: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "in_task.py", line 53, in carry_out
    raise EngineUnfit(msg) from error
{last}

\t... 1 more
"""


class Gone(Exception):
    def __str__(self) -> str:
        raise ConnectionError


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(
            IN_A_WORKER.format(
                last="rlmm.errors.storage_errors.EngineUnfit: the driver is 1, here is 2"
            ),
            "the driver is 1, here is 2",
            id="raised by ours",
        ),
        pytest.param(
            IN_A_WORKER.format(last="ModuleNotFoundError: No module named 'spark_tiering'"),
            "ModuleNotFoundError: No module named 'spark_tiering': the workers need rlmm's"
            " packages, see docs/spark.md",
            id="without our packages",
        ),
        pytest.param(
            IN_A_WORKER.format(last="KeyboardInterrupt"), "KeyboardInterrupt", id="says nothing"
        ),
        pytest.param(
            "An error occurred\n: org.apache.spark.SparkException: Job aborted: Lost task 0.3:"
            " Python worker exited unexpectedly (crashed)\n\tat a.b.C",
            "the Python worker died",
            id="worker died",
        ),
        pytest.param(
            "An error\n: SparkException: Job aborted: ExecutorLostFailure (executor 3 exited caused"
            " by one of the running tasks) Reason: Container killed: 137\nDriver stacktrace:",
            "an executor was lost: Container killed: 137",
            id="executor lost",
        ),
        pytest.param(
            'x\n: java.io.IOException: Cannot run program "python9": error=2, No such file\n\tat y',
            'Cannot run program "python9": error=2, No such file',
            id="no Python",
        ),
        pytest.param(
            "An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: all went wrong\n\tat a.b.C(D.scala:1)\n"
            "Caused by: java.net.ConnectException: Connection refused\n\t... 1 more",
            "ConnectException: Connection refused",
            id="java",
        ),
        pytest.param("\n  Something   else\nat length", "Something else", id="unknown"),
        pytest.param("", "RuntimeError", id="nothing at all"),
    ],
)
def test_cause_when_a_job_failed_is_the_innermost_message(text: str, why: str) -> None:
    """The cause of a failed job is one line: the innermost message, a worker's first."""
    assert cause_of(RuntimeError(text)) == why


def test_cause_when_the_error_cannot_be_read_then_is_its_name() -> None:
    """The cause of an error that Java cannot describe any more is the error's name."""
    assert cause_of(Gone()) == "Gone"


def test_cause_when_it_is_long_then_is_cut() -> None:
    """A long cause is cut to one line."""
    assert len(cause_of(RuntimeError("x" * 10_000))) == 500


@pytest.mark.parametrize(
    ("log", "why"),
    [
        pytest.param(
            "Using Spark's default log4j profile\n"
            'Exception in thread "main" org.apache.spark.SparkException: When running with master'
            " 'yarn' either HADOOP_CONF_DIR or YARN_CONF_DIR must be set in the environment.\n"
            "\tat org.apache.spark.deploy.SparkSubmitArguments.error(SparkSubmitArguments.scala)\n",
            "SparkException: When running with master 'yarn' either HADOOP_CONF_DIR or"
            " YARN_CONF_DIR must be set in the environment.",
            id="exception",
        ),
        pytest.param("first\nJAVA_HOME is not set\n", "JAVA_HOME is not set", id="shell"),
        pytest.param("one\ntwo\n\n", "two", id="no complaint"),
        pytest.param("", "it printed nothing", id="nothing"),
    ],
)
def test_last_words_when_java_ended_then_are_its_last_complaint(log: str, why: str) -> None:
    """The last words of Java are the line with its last error, without the log decoration."""
    assert last_said(log) == why
