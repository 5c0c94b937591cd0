"""Questions about user partitions that do not exist: clients may make up any names."""

from __future__ import annotations

import pytest

from rlmm.errors import NotReady
from tests.support.builders import tp
from tests.support.memory import memory_below
from tests.unit.gate.test_admission import loading, opened


def test_gate_when_asked_about_made_up_partitions_then_keeps_none_of_them() -> None:
    """Names that a client makes up take no memory, whether they are refused or unknown."""
    gate = opened()
    names = (tp(f"{number:03}{'x' * 30_000}", 7) for number in range(200))
    with memory_below(1 << 20):
        for partition in names:
            assert not gate.admit(partition).knows(partition)
            assert not gate.admit_stored(partition).knows(partition)
            gate.place_of(partition)
    closed = loading()
    with memory_below(1 << 20):
        for number in range(200):
            with pytest.raises(NotReady):
                closed.admit(tp(f"{number:03}{'x' * 30_000}", 7))
