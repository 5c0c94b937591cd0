"""The sorted map of slots against a plain dict: its chunks, and running out of memory."""

from __future__ import annotations

from typing import Never

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata import slots as slots_module
from rlmm.metadata.slots import Slots


def filled(*offsets: int) -> Slots:
    slots = Slots()
    for offset in offsets:
        slots.put(offset, b"%d" % offset)
    return slots


def require_equal(slots: Slots, model: dict[int, bytes], asked: int) -> None:
    assert list(slots) == sorted(model.items())
    assert list(slots.ids()) == [uuid for _, uuid in sorted(model.items())]
    assert len(slots) == len(model)
    assert slots.top == max(model, default=None)
    for offset in (asked - 1, asked, asked + 1, -(2**63), 2**63 - 1):
        below = max((other for other in model if other <= offset), default=None)
        assert slots.floor(offset) == (None if below is None else model[below])
        assert slots.floor_slot(offset) == (None if below is None else (below, model[below]))
        assert list(slots.since(offset)) == [
            slot for slot in sorted(model.items()) if slot[0] >= offset
        ]
        assert slots.above(offset) == min((n for n in model if n > offset), default=None)
        assert slots.get(offset) == model.get(offset)


@pytest.mark.parametrize("step", [1, -1], ids=["rising", "falling"])
def test_slots_when_they_grow_then_no_chunk_is_longer_than_allowed(
    step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change moves a bounded number of entries, and appending leaves full chunks behind."""
    monkeypatch.setattr(slots_module, "CHUNK_MAX", 4)
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
    require_equal(slots, expected, offset)
    slots.put(offset, b"new")
    require_equal(slots, expected | {offset: b"new"}, offset)


OFFSETS = st.integers(0, 40) | st.sampled_from([-(2**63), -1, 1_000, 2**63 - 1])
STEPS = st.lists(st.tuples(st.sampled_from("pppparl"), OFFSETS), max_size=80)
"""p puts, a puts above all others, r removes, l takes off the last."""


def step(slots: Slots, model: dict[int, bytes], kind: str, offset: int, new: bytes) -> None:
    match kind:
        case "p":
            slots.put(offset, new)
            model[offset] = new
        case "a":
            above = max(model, default=offset) + 1
            slots.append(above, new)
            model[above] = new
        case "r":
            slots.remove(offset)
            model.pop(offset, None)
        case _ if model:
            assert slots.pop_last() == model.pop(max(model))


@given(st.integers(1, 6), STEPS)
def test_slots_after_any_steps_equal_a_dict(chunk_max: int, steps: list[tuple[str, int]]) -> None:
    """The slots equal a sorted dict after every step, however short their chunks are."""
    slots, model = Slots(), dict[int, bytes]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rlmm.metadata.slots.CHUNK_MAX", chunk_max)
        for number, (kind, offset) in enumerate(steps):
            step(slots, model, kind, offset, b"%d" % number)
            require_equal(slots, model, offset)
            lengths = [len(offsets) for offsets, _ in slots.chunks()]
            assert max(lengths) <= chunk_max
            assert min(lengths) >= (1 if model else 0)
