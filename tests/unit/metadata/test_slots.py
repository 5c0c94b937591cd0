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


def test_slots_when_empty_then_find_nothing() -> None:
    """An empty map answers every question with nothing."""
    require_sound(Slots(), {})


def test_slots_when_filled_in_any_order_then_are_sorted() -> None:
    """Order of arrival leaves no trace."""
    for offsets in ((1, 5, 9), (9, 5, 1), (5, 9, 1), (5, 1, 9)):
        require_sound(filled(*offsets), {1: b"1", 5: b"5", 9: b"9"})


def test_slots_when_one_is_put_again_then_its_id_is_replaced() -> None:
    """A slot has the id that was put last."""
    slots = filled(1, 5, 9)
    slots.put(5, b"new")
    slots.put(9, b"newest")
    require_sound(slots, {1: b"1", 5: b"new", 9: b"newest"})


def test_slots_when_the_last_is_taken_then_the_one_before_is_the_top() -> None:
    """Slots are removed from the top down to none and can be filled again."""
    slots = filled(-3, 0, 9)
    assert [slots.pop_last() for _ in range(3)] == [b"9", b"0", b"-3"]
    require_sound(slots, {})
    slots.append(4, b"4")
    require_sound(slots, {4: b"4"})


@pytest.mark.parametrize("offset", [-1, 0, 2, 10])
def test_slots_when_one_that_is_empty_is_removed_then_nothing_happens(offset: int) -> None:
    """Emptying an empty slot is no error."""
    slots = filled(1, 5, 9)
    slots.remove(offset)
    require_sound(slots, {1: b"1", 5: b"5", 9: b"9"})


@pytest.mark.usefixtures("_tiny_chunks")
@pytest.mark.parametrize(
    "order",
    [
        pytest.param(list(range(40)), id="rising"),
        pytest.param(list(range(40, 0, -1)), id="falling"),
        pytest.param([n * 17 % 41 for n in range(41)], id="scattered"),
        pytest.param([*range(0, 40, 2), *range(1, 40, 2)], id="filling-gaps"),
    ],
)
def test_slots_when_chunks_are_cut_then_every_question_crosses_them(order: list[int]) -> None:
    """Many chunks answer as one map, while they are filled and while they are emptied."""
    slots, expected = Slots(), dict[int, bytes]()
    for offset in order:
        slots.put(offset, b"%d" % offset)
        expected[offset] = b"%d" % offset
    require_sound(slots, expected)
    assert len(slots.chunks()) > 5
    for offset in order[::-2]:
        slots.remove(offset)
        del expected[offset]
        require_sound(slots, expected)
    while expected:
        top = max(expected)
        assert slots.pop_last() == expected.pop(top)
        require_sound(slots, expected)


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
def test_f87_slots_when_memory_runs_out_then_are_as_before(
    offsets: tuple[int, ...], offset: int
) -> None:
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
