"""The cause of a failed Spark job, in one line, out of Java and Python traces. Pure."""

from __future__ import annotations

import re

from spark_tiering.execution.task_entry import WHY_CHARS_MAX

_TRACEBACK = re.compile(
    r"^(?:.*: )?Traceback \(most recent call last\):\n(?:[ \t].*\n)+(?P<said>\w[\w.]*(?:: .*)?)$",
    re.MULTILINE,
)
_KNOWN = (
    (re.compile(r"Python worker exited unexpectedly"), "the Python worker died"),
    (re.compile(r"ExecutorLostFailure \(.*?Reason: (?P<said>[^\n]*)"), "an executor was lost: {}"),
    (re.compile(r"\b(?P<said>Python in worker has different version[^\n]*)"), "{}"),
    (re.compile(r"(?P<said>Cannot run program [^\n]*)"), "{}"),
)
_JAVA = re.compile(r"^(?:: |Caused by: )(?:[a-z]\w*\.)+(?P<said>[A-Z]\w*.*)$", re.MULTILINE)
_JAVA_NAME = re.compile(r"^(?:\w+\.)+(?=\w+(?:Error|Exception|Failure)\b)")
_OURS = re.compile(r"No module named '(?:spark_tiering|rlmm)[.\w]*'")


def cause_of(error: BaseException) -> str:
    """Return the innermost cause: a worker's last Python error, before Spark's own message."""
    try:
        text = str(error)  # of a Java exception: it is asked in the Java process
    except Exception:  # noqa: BLE001 - which may be gone
        return type(error).__name__
    python = [found["said"] for found in _TRACEBACK.finditer(text)]
    if python:
        return _hinted(_line(python[-1].removeprefix("rlmm.errors.storage_errors.EngineUnfit: ")))
    for pattern, told in _KNOWN:
        if found := pattern.search(text):
            return _line(told.format(*found.groupdict().values()))
    java = [found["said"] for found in _JAVA.finditer(text)]
    lines = java[-1:] or text.strip().splitlines()
    return _line(next(iter(lines), "") or type(error).__name__)


def last_said(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    told = [line for line in lines if re.search(r"Exception|Error\b|ERROR|error:|not set", line)]
    told = [line for line in told if not line.startswith("at ")]
    found = (told or lines or ["it printed nothing"])[-1]
    return _line(_JAVA_NAME.sub("", re.sub(r'^Exception in thread "[^"]*" ', "", found)))


def _line(text: str) -> str:
    return " ".join(text.split())[:WHY_CHARS_MAX]


def _hinted(said: str) -> str:
    if not _OURS.search(said):
        return said
    return f"{said}: the workers need rlmm's packages, see docs/spark.md"
