"""The exec protocol against its own serving side, and against children that misbehave."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rlmm.cli.main import cli
from rlmm.errors import ConfigError, EngineFailed
from rlmm.metadata.outcomes import Level
from rlmm_conformance import child as child_module
from rlmm_conformance.corpus import load_packaged
from rlmm_conformance.engine import Suite
from rlmm_conformance.exec_engine import ExecEngine
from rlmm_conformance.python_engine import PythonEngine
from rlmm_conformance.record_vectors import load_record_vectors
from rlmm_conformance.runner import run
from rlmm_conformance.serve import ConformanceSession

if TYPE_CHECKING:
    from click.testing import Result

    from rlmm_conformance.engine import EngineUnderTest
    from rlmm_conformance.report import ConformanceReport

DOCUMENT = Path(__file__).parents[2] / "docs" / "conformance.md"
SERVE = shlex.join([sys.executable, "-m", "rlmm", "conformance", "serve"])

HELLO = '{"answer": {"protocol": 1, "suites": ["scenarios"]}}'
OK = '{"answer": "ok"}'
NEVER_MS = 60_000
SOON_MS = 200


def child(*replies: str, then: str = "") -> str:
    program = (
        "import os, sys\n"
        f"for reply in {list(replies)!r}:\n"
        "    if not sys.stdin.readline():\n"
        "        break\n"
        "    sys.stdout.write(reply + '\\n')\n"
        "    sys.stdout.flush()\n"
        f"{then}\n"
    )
    return shlex.join([sys.executable, "-c", program])


def command_run(*options: str) -> Result:
    return CliRunner().invoke(cli, ["conformance", "run", *options])


def run_all(engine: EngineUnderTest) -> ConformanceReport:
    try:
        corpora = [load_packaged()]
        return run(engine, corpora, load_record_vectors(), list(Suite), skip_missing=True)
    finally:
        engine.close()


def test_engine_when_behind_a_pipe_gives_the_same_report() -> None:
    """An engine behind a pipe gives the same suites, answers and proofs as in process."""
    direct, piped = run_all(PythonEngine()), run_all(ExecEngine(SERVE))
    assert piped.suites == direct.suites
    assert not piped.not_offered


def test_served_model_when_run_offers_scenarios_only() -> None:
    """The report names the suites that an engine does not offer and leaves them out."""
    report = run_all(ExecEngine(f"{SERVE} --engine model"))
    assert not report.failed
    assert not report.documented
    assert report.passed == 969
    assert report.not_offered == (Suite.RECORDS, Suite.PARTITIONER)


def test_engine_when_without_white_box_operations_is_not_asked_for_them() -> None:
    """White-box steps that an engine cannot answer count as not asked, not as passed."""
    serving = (
        "import json, sys\n"
        "from rlmm_conformance.python_engine import PythonEngine\n"
        "from rlmm_conformance.serve import ConformanceSession\n"
        "session = ConformanceSession(PythonEngine())\n"
        "for line in sys.stdin.buffer:\n"
        "    reply = session.reply_to(line)\n"
        "    if b'hello' in line:\n"
        "        reply['answer']['without'] = ['epoch_state', 'partition_state']\n"
        "    assert b'epoch_state' not in line and b'partition_state' not in line\n"
        "    print(json.dumps(reply), flush=True)\n"
    )
    report = run_all(ExecEngine(shlex.join([sys.executable, "-c", serving])))
    assert (report.suites[0].checks, report.suites[0].not_asked) == (969 - 45, 45)
    assert not report.failed


DEATHS = {
    "not there": (
        "no-such-program x",
        "cannot be started: No such file or directory: no-such-program",
    ),
    "at once": (child(then="sys.exit(7)"), "ended with status 7 without an answer"),
    "with last words": (
        child(then="sys.exit('out of\\nluck')"),
        "ended with status 1 without an answer; its last words: out of luck",
    ),
    "by a signal": (child(then="os.kill(os.getpid(), 9)"), "was ended by signal 9"),
    "garbage": (child("hello yourself"), 'something that is not JSON: "hello yourself"'),
    "bytes that are no text": (child(then="os.write(1, b'\\xff\\n')"), "not JSON"),
    "no reply": (child('{"protocol": 1}'), "neither 'answer' nor 'failed'"),
    "answer and more": (child('{"answer": 1, "id": 2}'), "neither 'answer' nor 'failed'"),
    "other protocol": (child('{"answer": {"protocol": 2}}'), "speaks another protocol"),
    "unknown suite": (
        child('{"answer": {"protocol": 1, "suites": ["songs"]}}'),
        "offers suites among scenarios, records, partitioner",
    ),
    "without what must be": (
        child('{"answer": {"protocol": 1, "suites": [], "without": ["get"]}}'),
        "may be without some of epoch_state, partition_state",
    ),
    "gives up": (child('{"failed": "no licence"}'), 'gave up: "no licence"'),
    "output closed": (
        child(then="os.close(1)\nsys.stdin.read()"),
        "closed its output without an answer",
    ),
}


@pytest.mark.parametrize(("command", "says"), DEATHS.values(), ids=DEATHS)
def test_child_when_it_cannot_be_started_or_greeted_ends_with_three(
    command: str, says: str
) -> None:
    """The command prints one line about the child's failure, no result, and does not hang."""
    result = command_run("--engine", f"exec:{command}")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith("rlmm: engine-failed: engine exec:")
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    path = tmp_path / "v.json"
    steps = [{"op": "load", "expect": "ok"}, {"op": "list", "expect": []}]
    path.write_text(json.dumps([{"name": "one", "level": "store", "steps": steps}]))
    return path


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (child(HELLO, OK, OK, then="sys.exit(5)"), "ended with status 5"),
        (child(HELLO, OK, OK, "oops"), "not JSON"),
        (child(HELLO, OK, OK, '{"failed": "bug"}'), 'gave up: "bug"'),
        (child(HELLO, OK, f"{OK}\n{OK}"), "answered without being asked"),
    ],
    ids=["dies", "garbage", "gives up", "speaks unasked"],
)
def test_child_when_it_fails_names_the_step(vectors: Path, command: str, says: str) -> None:
    """A child that fails gives a line with file, scenario, step and operation, and exit code 3."""
    result = command_run("--vectors", str(vectors), "--engine", f"exec:{command}")
    assert (result.exit_code, result.stdout) == (3, "")
    assert f"{vectors}: scenario 'one': step 2 (list): engine exec:" in result.stderr
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("lie", ["5", "true", '"zz"', "[1]", '{"error": "bang"}', "1e999"])
def test_child_when_it_answers_wrongly_fails_the_step(vectors: Path, lie: str) -> None:
    """A wrong answer of any type is a failed step with exit code 1 and one line."""
    command = child(HELLO, OK, OK, f'{{"answer": {lie}}}')
    result = command_run("--vectors", str(vectors), "--engine", f"exec:{command}")
    assert result.exit_code == 1
    assert "step 2 (list): expected [], actual " in result.stdout.replace("not_ready", "")


@pytest.mark.parametrize("name", ["exec:", "exec:'", "ruby", "exec"])
def test_engine_when_its_name_means_nothing_is_a_usage_error(name: str) -> None:
    """The command ends with 2 for an unknown engine or an unusable command line."""
    result = command_run("--engine", name)
    assert result.exit_code == 2
    assert result.stderr.startswith("rlmm: config: ")


PAUSE = "import signal\nsignal.pause()"
ENDLESS = "sys.stdin.readline()\nwhile True:\n    sys.stdout.write('x' * 65536)"
UNANSWERED = {
    "never answers": ("sys.stdin.read()", "one", r"no answer within 0\.2 s"),
    "closes its input": (f"os.close(0)\n{PAUSE}", "n" * 1_000_000, "no answer within"),
    "does not read": (PAUSE, "n" * 1_000_000, "no answer within"),
    "answers without end": (ENDLESS, "one", "an answer of more than 16777216 bytes"),
}
"""Program of a child behind its greeting, the name of the scenario, and what the error says."""


@pytest.mark.parametrize(("then", "scenario", "says"), UNANSWERED.values(), ids=UNANSWERED)
def test_child_when_it_never_answers_is_killed(then: str, scenario: str, says: str) -> None:
    """Every wait for a child has a deadline and every answer a limit; the child is killed."""
    is_endless = then == ENDLESS
    engine = ExecEngine(child(HELLO, then=then), NEVER_MS if is_endless else SOON_MS)
    with pytest.raises(EngineFailed, match=says):
        engine.begin(scenario, Level.STORE, initialized=False)
    engine.close()
    assert engine._child._process.returncode is not None


def test_child_when_it_never_greets_is_given_up() -> None:
    """The first answer of a child has a deadline of its own."""
    command = child(then="sys.stdin.read()")
    with pytest.raises(EngineFailed, match="no answer within"):
        ExecEngine(command, answer_timeout_ms=SOON_MS, start_timeout_ms=SOON_MS)


def test_child_when_it_ignores_the_end_of_input_is_killed() -> None:
    """A close waits a moment for a child that ignores the end of its input, and then kills it."""
    engine = ExecEngine(child(HELLO, then=PAUSE), NEVER_MS)
    engine.close()
    assert engine._child._process.returncode == -9


def test_child_when_it_floods_its_errors_still_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command drains the child's error stream and keeps only its end."""
    monkeypatch.setattr(child_module, "EXIT_GRACE_S", 30.0)
    flood = "sys.stderr.write('x' * 1_000_000)\nsys.stderr.flush()\n"
    engine = ExecEngine(
        child(HELLO, then=f"{flood}sys.stdin.readline()\nprint({OK!r}, flush=True)")
    )
    engine.begin("one", Level.STORE, initialized=False)
    engine.close()
    assert engine._child._process.returncode == 0


def test_suite_when_asked_for_by_name_and_not_offered_is_a_usage_error() -> None:
    """The command refuses a requested suite that the engine does not offer."""
    engine = ExecEngine(child(HELLO))
    with pytest.raises(ConfigError, match="does not offer records"):
        run(engine, [], load_record_vectors(), [Suite.RECORDS], skip_missing=False)
    engine.close()


@pytest.mark.parametrize(
    "request_line",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"call": "sing"}',
        b'{"call": "hello", "protocol": 2}',
        b'{"call": "begin", "scenario": "one", "level": "shelf"}',
        b'{"call": "begin", "scenario": "one", "level": "cache"}',
        b'{"call": "step", "step": {"op": "fetch"}}',
        b'{"call": "step", "step": []}',
        b'{"call": "decode", "value": "0"}',
        b'{"call": "encode", "event": [], "publish": true}',
        b'{"call": "partition", "topic_id": "00", "partition": 0}',
    ],
)
def test_served_engine_when_asked_nonsense_says_so_and_goes_on(request_line: bytes) -> None:
    """A request that cannot be meant is answered with `failed`; the next one is served."""
    session = ConformanceSession(PythonEngine())
    assert set(session.reply_to(request_line)) == {"failed"}
    assert set(session.reply_to(b'{"call": "hello", "protocol": 1}')) == {"answer"}


def test_documented_session_when_repeated_gives_the_documented_replies() -> None:
    """The serving side gives the example session of the document, line by line."""
    lines = re.findall(r"^([<>]) (.*)$", DOCUMENT.read_text("utf-8"), re.MULTILINE)
    assert len(lines) >= 20
    session = ConformanceSession(PythonEngine())
    for (asks, request), (says, reply) in zip(lines[::2], lines[1::2], strict=True):
        assert (asks, says) == (">", "<")
        assert session.reply_to(request.encode()) == json.loads(reply)


def test_documented_engine_when_run_passes(tmp_path: Path) -> None:
    """The example engine of the document needs nothing of this package and passes its suite."""
    (source,) = re.findall(r"```python\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    (tmp_path / "example.py").write_text(source)
    report = run_all(ExecEngine(shlex.join([sys.executable, "-I", str(tmp_path / "example.py")])))
    assert [(suite.suite, suite.passed) for suite in report.suites] == [(Suite.PARTITIONER, 65)]
    assert not report.failed
