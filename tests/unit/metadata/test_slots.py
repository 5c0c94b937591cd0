"""The sorted map behind look-ups: its questions, its chunks, and running out of memory."""

from __future__ import annotations

from typing import Never

import pytest

from rlmm.metadata import slots as slots_module
from rlmm.metadata.slots import Slots


def filled(*offsets: int) -> Slots:
    slots = Slots()
    for offset in offsets:
        slots.put(offset, b"%d" % offset)
    return slots


def require_sound(slots: Slots, expected: dict[int, bytes]) -> None:
    assert list(slots) == sorted(expected.items())
    assert list(slots.ids()) == [expected[offset] for offset in sorted(expected)]
    assert len(slots) == len(expected)
    assert slots.top == max(expected, default=None)
    asked = {0, -(2**63), 2**63 - 1}
    asked.update(near + offset for offset in expected for near in (-1, 0, 1))
    for offset in asked:
        below = [other for other in expected if other <= offset]
        since = [slot for slot in sorted(expected.items()) if slot[0] >= offset]
        assert list(slots.since(offset)) == since, offset
        slot = (max(below), expected[max(below)]) if below else None
        assert slots.floor_slot(offset) == slot, offset
        above = [other for other in expected if other > offset]
        assert slots.floor(offset) == (expected[max(below)] if below else None), offset
        assert slots.above(offset) == min(above, default=None), offset
        assert slots.get(offset) == expected.get(offset), offset


@pytest.fixture
def _tiny_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots_module, "CHUNK_MAX", 4)


@pytest.mark.usefixtures("_tiny_chunks")
@pytest.mark.parametrize("step", [1, -1], ids=["rising", "falling"])
def test_slots_when_they_grow_then_no_chunk_is_longer_than_allowed(step: int) -> None:
    """A change moves a bounded number of entries, and appending leaves full chunks behind."""
    slots = filled(*range(0, 100 * step, step))
    firsts = [offsets[0] for offsets, _ in slots.chunks()]
    lengths = [len(offsets) for offsets, _ in slots.chunks()]
    assert max(lengths) <= 4
    assert min(lengths) >= 1
    assert slots._lower is not None
    assert slots._lower.firsts == firsts[:-1]
    if step == 1:
        assert lengths[:-1] == [4] * (len(lengths) - 1)


class _FullMemory(list[bytes]):
    def append(self, _: object) -> Never:
        raise MemoryError

    def insert(self, *_: object) -> Never:
        raise MemoryError


@pytest.mark.parametrize("offsets", [(), (1, 5, 9)], ids=["empty", "filled"])
@pytest.mark.parametrize("offset", [0, 7, 10])
def test_f87_slots_when_memory_runs_out_then_stay(offsets: tuple[int, ...], offset: int) -> None:
    """A put that runs out of memory changes nothing, and the map works on."""
    slots = filled(*offsets)
    room = slots._ids
    slots._ids = _FullMemory(room)
    with pytest.raises(MemoryError):
        slots.put(offset, b"new")
    slots._ids = room
    expected = {offset: b"%d" % offset for offset in offsets}
    require_sound(slots, expected)
    slots.put(offset, b"new")
    require_sound(slots, expected | {offset: b"new"})
