"""
All tests with a real broker in one worker of a distributed run, everything else wherever there is
room.

They share that worker's broker, and never two of them are at work at once: on a small machine
brokers that compete for the processor are slow enough to look broken. The group is the longest of
all and is begun first.

Only ids of tests reach the place where work is given out, so the id has to say it: the word `kafka`
stands in the folder, the file, the name or the case of every such test.
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
