"""
What all tests share: the hypothesis profiles, the judge of `docs/capabilities.md`, the checker of
every shard that a test touched.

Fixtures do not belong here: a test imports its builders and fakes from `tests.support` by name.
"""

import pytest
from hypothesis import settings

pytest_plugins = [
    "pytester",
    "tests.kafka.fixtures",
    "tests.support.repository.capabilities",
    "tests.support.engine.shards",
    "tests.support.spark.sessions",
]

# The short forms try the same examples every time, so that a red run is red again when it is
# repeated; the long form looks for new ones. Deadlines are off: a busy machine is not a
# counterexample.
settings.register_profile(
    "fast", max_examples=25, stateful_step_count=20, derandomize=True, deadline=None
)
settings.register_profile(
    "ci", max_examples=100, stateful_step_count=40, derandomize=True, deadline=None
)
settings.register_profile("long", max_examples=2_000, stateful_step_count=80, deadline=None)
settings.load_profile("fast")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse ids with an address of memory: each worker would collect other tests."""
    odd = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if odd:
        msg = f"these tests have another id in every process: {odd[:3]}"
        raise pytest.UsageError(msg)
