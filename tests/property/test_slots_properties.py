"""The sorted map of slots against a plain dict."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlmm.metadata.slots import Slots

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
