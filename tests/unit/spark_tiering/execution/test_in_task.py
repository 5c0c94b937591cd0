"""In-task work of a worker beside its units."""

from __future__ import annotations

import gc
import pickle
import sys
from types import ModuleType

import pytest

from spark_tiering.execution import task_entry as in_task
from spark_tiering.execution.task_entry import TaskContext, carry_out


@pytest.fixture
def freezes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(gc, "freeze", lambda: found.append("frozen"))
    monkeypatch.setattr(in_task, "_set_apart_at", set())
    return found


def test_imported_modules_are_frozen(freezes: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker freezes imported modules once after each change."""
    errand = TaskContext(1, pickle.dumps(abs))
    for _ in range(3):
        assert pickle.loads(carry_out(errand, 0, pickle.dumps(-7))) == 7
    assert freezes == ["frozen"]
    monkeypatch.setitem(sys.modules, "imported_by_a_unit", ModuleType("imported_by_a_unit"))
    carry_out(errand, 1, pickle.dumps(-8))
    carry_out(errand, 2, pickle.dumps(-9))
    assert freezes == ["frozen", "frozen"]
