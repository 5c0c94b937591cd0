"""Numbered failure scenarios of events and queries, as histories that the real engine plays."""

from __future__ import annotations

from rlmm_conformance.python_engine import PythonEngine
from tests.conformance.play import FINISHED, Step, add, ask, copied, deleted, differences, update

MARKED = "DELETE_PARTITION_MARKED"
STARTED = "DELETE_PARTITION_STARTED"
DELETED = "DELETE_PARTITION_FINISHED"
READY = [ask("load", "ok"), ask("mark_initialized", "ok")]


def rules_of(*steps: Step, level: str = "cache") -> list[str]:
    engine = PythonEngine()
    found = [one.rule_names or "FAILED" for one in differences(engine, *steps, level=level)]
    assert not engine.violations()
    return found


def test_f71_offset_when_it_lies_behind_the_epochs_end_is_not_found() -> None:
    """Within a segment an epoch reaches from its listed offset to the next epoch's."""
    assert not rules_of(
        *copied("a", 0, 100, {"0": 0, "1": 50}),
        ask("get", None, epoch=0, offset=60),
        ask("get", "a", epoch=0, offset=49),
        ask("get", "a", epoch=1, offset=50),
        ask("get", None, epoch=1, offset=49),
    )


def test_f72_offset_when_a_larger_segment_finishes_later_is_found_there() -> None:
    """A finished segment displaces the smaller one that it holds."""
    assert not rules_of(
        *copied("a", 10, 90), *copied("b", 5, 100), ask("get", "b", epoch=0, offset=95)
    )


def test_f73_slot_when_its_segment_is_deleted_falls_to_the_other_that_covers() -> None:
    """Kafka restores nothing; a finished segment that covers the offset is answered."""
    assert rules_of(
        *copied("a", 0, 100),
        *copied("b", 0, 200),
        *deleted("b"),
        ask("get", None, epoch=0, offset=50),
    ) == ["cover-lookup"]


def test_f74_segment_when_overwritten_stays_in_listing_and_size() -> None:
    """A displaced segment stays in listing and size, so that retention can find it."""
    assert not rules_of(
        *copied("a", 0, 100),
        *copied("b", 101, 200),
        *copied("c", 0, 150),
        ask("list_epoch", ["c", "b"], epoch=0) | {"expect_fixed": ["c", "a", "b"]},
        ask("size", 2 * 1_048_576, epoch=0) | {"expect_fixed": 3 * 1_048_576},
    )


def test_f75_offset_when_only_an_older_segment_covers_it_is_found() -> None:
    """An offset that only an older finished segment covers is found despite a hole in the slots."""
    late = [*copied("a", 0, 200), *copied("b", 0, 100), ask("get", None, epoch=0, offset=150)]
    inner = [*copied("a", 0, 200), *copied("b", 50, 100), ask("get", None, epoch=0, offset=150)]
    assert rules_of(*late) == ["cover-lookup"]
    assert rules_of(*inner) == ["cover-lookup"]


def test_f76_highest_offset_when_segments_are_deleted_does_not_fall() -> None:
    """The highest offset of an epoch is its own end in the segment and never falls."""
    assert not rules_of(
        *copied("a", 0, 100, {"0": 0, "1": 60}),
        ask("highest", 59, epoch=0),
        ask("highest", 100, epoch=1),
        *deleted("a"),
        ask("highest", 59, epoch=0),
        *copied("b", 0, 20),
        ask("highest", 59, epoch=0),
    )


def test_f77_listing_when_states_differ_holds_all_but_the_deleted() -> None:
    """The listing has started, finished, displaced and deleting segments by rising start offset."""
    assert not rules_of(
        add("started", 300, 399),
        *copied("displaced", 0, 50),
        *copied("finished", 0, 100),
        *copied("leaving", 101, 200),
        update("leaving", "DELETE_SEGMENT_STARTED"),
        *copied("gone", 201, 250),
        *deleted("gone"),
        ask("list", ["started", "displaced", "finished", "leaving"]),
        ask("list_epoch", ["finished", "displaced", "leaving", "started"], epoch=0),
    )


def test_f79_history_when_replayed_a_second_time_ends_in_the_same_state() -> None:
    """A second replay drops or replaces adds, and its finishes and deletions change nothing."""
    history = [*copied("a", 0, 9), *copied("b", 10, 19), *copied("c", 20, 29), *deleted("c")]
    questions = [
        ask("list_epoch", ["a", "b"], epoch=0),
        ask("get", "b", epoch=0, offset=12),
        ask("highest", 29, epoch=0),
    ]
    again = [
        add("a", 0, 9) | {"expect": "dropped"},
        update("a", FINISHED),
        add("b", 10, 19) | {"expect": "dropped"},
        update("b", FINISHED),
        *copied("c", 20, 29),
        *deleted("c"),
        update("c", "DELETE_SEGMENT_FINISHED", {"error": "not_found"}),
    ]
    assert not rules_of(*history, *questions, *again, *questions)


def test_f80_finish_when_it_comes_before_its_start_is_lost() -> None:
    """A finish before its start is refused as not found, and the later start stays unfinished."""
    assert not rules_of(
        update("a", FINISHED, {"error": "not_found"}),
        add("a", 0, 9),
        ask("get", None, epoch=0, offset=5),
        ask("list", ["a"]),
    )


def test_f81_event_when_it_follows_a_finished_partition_deletion_is_kept() -> None:
    """An event after a finished partition deletion is stored, and readiness starts again."""
    assert (
        rules_of(
            *READY,
            *copied("a", 0, 9),
            ask("partition_delete", "applied", state=DELETED),
            ask("list", {"error": "not_found"}),
            add("b", 10, 19) | {"expect": {"error": "illegal_state"}},
            ask("mark_initialized", {"error": "null_pointer"}),
            *READY,
            ask("list", []),
            level="store",
        )
        == ["shard-holds-all"] * 2
    )


def test_f82_partition_delete_when_out_of_order_is_stored_as_kafka_stores_it() -> None:
    """Partition deletion records apply in any order, and a finished one removes the state."""
    assert not rules_of(
        ask("partition_delete", "applied", state=MARKED),
        ask("partition_delete", "applied", state=STARTED),
        ask("partition_delete", "applied", state=MARKED),
        ask("partition_state", MARKED),
        ask("partition_delete", "applied", state=DELETED),
        ask("partition_state", None),
        ask("partition_delete", "applied", state=DELETED),
        ask("partition_delete", "applied", state=STARTED),
        ask("partition_state", STARTED),
        level="store",
    )


def test_f82_partition_deletion_when_finished_again_removes_what_came_since() -> None:
    """A second finished deletion of a partition removes the events stored since the first one."""
    finished = ask("partition_delete", "applied", state=DELETED)
    emptied = [ask("list", []), update("a", FINISHED, "dropped")]
    steps = [finished, *READY, add("a", 0, 9), finished, *READY, *emptied]
    assert not rules_of(*steps, level="store")


def test_f83_partition_when_unknown_unready_or_empty_gives_three_answers() -> None:
    """The engine distinguishes a partition that is not loaded, not ready, and without segments."""
    assert not rules_of(
        ask("list", {"error": "not_found"}),
        ask("load", "ok"),
        ask("list", {"error": "not_ready"}),
        ask("mark_initialized", "ok"),
        ask("list", []),
        level="store",
    )


def test_f84_segment_when_its_fields_cannot_be_meant_is_refused() -> None:
    """A segment without epochs, with a falling range or a negative start is refused."""
    refused: Step = {"expect": {"error": "illegal_argument"}}
    assert not rules_of(
        add("a", 0, 9, {}) | refused,
        add("a", 10, 9) | refused,
        add("a", -1, 9) | refused,
        ask("list", []),
    )
