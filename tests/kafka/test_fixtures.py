"""The pytest plugin and tests that use a broker, without starting one."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tests.conformance.log.implementations import KafkaLogUnderTest
from tests.kafka.fixtures import StockPeers, Talkative

if TYPE_CHECKING:
    from pathlib import Path

PLUGIN = 'pytest_plugins = ["tests.kafka.fixtures"]\n'
ALONE = ("-p", "no:randomly", "-p", "no:asyncio")
WHAT_TO_INSTALL = (
    r"needs java\b.* for a real Kafka broker"
    r" \(Debian, Ubuntu: apt-get install default-jdk-headless( maven)?\)$"
)
"""Where the jars were fetched already, that needs nothing any more."""

QUICK_TEST = """
import pytest

@pytest.mark.timeout(9)
def test_quick_of_kafka(kafka_jars):
    pass
"""
WITH_AND_WITHOUT = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_quiet(number):
    pass

@pytest.mark.parametrize("number", range(4))
def test_with_kafka(number):
    pass
"""
TWO_TESTS = """
def test_one_of_kafka(kafka_jars):
    pass

def test_other_of_kafka(kafka_broker):
    pass
"""


def test_tests_when_java_is_missing_are_skipped_with_one_line_and_fail_in_ci(
    pytester: pytest.Pytester, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line for all of them names the packages to install; in CI they fail instead."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CI", raising=False)
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile(TWO_TESTS)
    result = pytester.runpytest_inprocess("-rs", *ALONE)
    result.assert_outcomes(skipped=2)
    (line,) = [line for line in result.outlines if "apt-get" in line]
    assert line.startswith("SKIPPED [2] ")
    assert re.search(WHAT_TO_INSTALL, line)
    monkeypatch.setenv("CI", "true")
    result = pytester.runpytest_inprocess(*ALONE)
    result.assert_outcomes(errors=2)
    result.stdout.fnmatch_lines(["*apt-get install default-jdk-headless*"])


def test_tests_that_ask_for_a_broker_are_marked(pytester: pytest.Pytester) -> None:
    """A test that uses a broker gets the mark and a longer timeout unless it sets one."""
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile(
        TWO_TESTS, test_marked=QUICK_TEST, test_plain="def test_without():\n    pass\n"
    )
    items, _ = pytester.inline_genitems(*ALONE)
    marks = {
        item.name: {mark.name: mark.args for mark in reversed(list(item.iter_markers()))}
        for item in items
    }
    usual = {"kafka": (), "timeout": (300,)}
    assert marks == {
        "test_one_of_kafka": usual,
        "test_other_of_kafka": usual,
        "test_quick_of_kafka": {**usual, "timeout": (9,)},
        "test_without": {},
    }


def test_tests_whose_id_does_not_say_it_are_refused(pytester: pytest.Pytester) -> None:
    """A broker's test without `kafka` in its id is an error: any worker would run it."""
    pytester.makeconftest(PLUGIN)
    pytester.makepyfile(test_plain="def test_without_the_word(kafka_jars):\n    pass\n")
    result = pytester.runpytest_inprocess(*ALONE)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*test_without_the_word asks for a real broker*"])


def test_tests_when_distributed_use_brokers_in_one_worker(pytester: pytest.Pytester) -> None:
    """All tests with a broker run in one of two workers."""
    pytester.makeconftest(PLUGIN)
    for name in ("test_kafka_here", "test_there"):
        pytester.makepyfile(**{name: WITH_AND_WITHOUT})
    result = pytester.runpytest("-n", "2", "-v", *ALONE)
    result.assert_outcomes(passed=16)
    seen = re.findall(r"^\[(gw\d)\] .* (\S+)", result.stdout.str(), re.MULTILINE)
    assert len({worker for worker, test in seen if "kafka" in test}) == 1
    assert {worker for worker, _ in seen} == {"gw0", "gw1"}


def test_test_when_it_fails_shows_what_its_broker_said(pytester: pytest.Pytester) -> None:
    """The report of a failing test, and of no other, shows the end of its broker's log."""
    pytester.makeconftest(
        PLUGIN
        + """
import io
import pytest
from tests.kafka.process import ProcessLog

class Broker:
    def __init__(self, path):
        self.logs = [ProcessLog(path)]

@pytest.fixture
def broker(tmp_path):
    made = Broker(tmp_path / "broker.log")
    made.logs[0].follow(io.StringIO("the disk is on fire\\n")).join()
    return made
"""
    )
    pytester.makepyfile("def test_it(broker):\n    assert 0\n\ndef test_well(broker):\n    pass\n")
    result = pytester.runpytest_inprocess(*ALONE)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(["*end of *broker.log*", "the disk is on fire"])
    assert result.outlines.count("the disk is on fire") == 1


def test_fixture_when_its_broker_is_indirect_has_logs_too(tmp_path: Path) -> None:
    """Logs of stock managers and of the contract suite's broker are shown, too."""
    nobody = cast("Any", SimpleNamespace(logs=[]))
    assert isinstance(StockPeers(nobody, tmp_path), Talkative)
    assert isinstance(KafkaLogUnderTest(nobody, nobody, nobody), Talkative)
