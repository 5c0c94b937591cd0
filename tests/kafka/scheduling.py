"""
All tests with a real broker in one worker of a distributed run, everything else anywhere.

Brokers that compete for a small machine are slow enough to look broken. The group is the longest
and begins first. Work is given out by ids, so `kafka` stands in the id of every such test.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

WORD = "kafka"
WITHOUT_BROKER = ("tests/unit/", "tests/property/", "tests/conformance/test_", "tests/repository/")
"""Where tests do no I/O, whatever they are called."""


def is_grouped(test_id: str) -> bool:
    return WORD in test_id and not test_id.startswith(WITHOUT_BROKER)


class OneWorkerForKafka(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return WORD if is_grouped(nodeid) else nodeid
