"""The partitions that a service answers for, as a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import InvalidArgument
from rlmm.metadata import assignment
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.partitioner import metadata_partition_for
from tests.support.builders import tp

if TYPE_CHECKING:
    from rlmm.metadata.ids import TopicIdPartition

COUNT = 50
HERE, NEIGHBOUR, ELSEWHERE = tp("a", 0), tp("b", 0), tp("c", 0)


def place(partition: TopicIdPartition) -> int:
    return metadata_partition_for(partition.topic_id, partition.partition, COUNT)


CASES: dict[str, tuple[Assignment, set[int], list[tuple[TopicIdPartition, int]], Any]] = {
    "everything": (Assignment.everything(), {*range(COUNT)}, [(HERE, place(HERE))], []),
    "nothing": (Assignment.nothing(), set(), [], [(HERE, place(HERE))]),
    "awaited": (Assignment.awaited(), set(), [], [(HERE, place(HERE))]),
    "metadata": (Assignment.of_metadata([4, 7]), {4, 7}, [(HERE, 4), (NEIGHBOUR, 7)], [(HERE, 5)]),
    "user": (
        Assignment.of_user([HERE]),
        {place(HERE)}, [(HERE, place(HERE))], [(NEIGHBOUR, place(HERE))],
    ),
    "both": (
        Assignment(frozenset({1}), frozenset({HERE})),
        {1, place(HERE)}, [(ELSEWHERE, 1), (HERE, place(HERE))], [],
    ),
}  # fmt: skip
"""Assignment, metadata partitions that it reads, user partitions that it covers or does not."""


@pytest.mark.parametrize(("given", "needed", "covered", "foreign"), CASES.values(), ids=CASES)
def test_assignment_when_given_then_reads_metadata_partitions_and_covers_what_is_assigned(
    given: Assignment,
    needed: set[int],
    covered: list[tuple[TopicIdPartition, int]],
    foreign: list[tuple[TopicIdPartition, int]],
) -> None:
    """A metadata partition covers all of its user partitions, a user partition no neighbour."""
    assert given.metadata_partitions(COUNT) == needed
    assert all(given.covers(partition, at) for partition, at in covered)
    assert not any(given.covers(partition, at) for partition, at in foreign)


def test_assignment_when_everything_or_not_known_then_says_so() -> None:
    """Everything fits any count of partitions, and an awaited assignment differs from none."""
    assert Assignment.everything().metadata_partitions(3) == {0, 1, 2}
    Assignment.everything().require_within(1)
    assert not Assignment.awaited().is_known
    assert Assignment.of_user([]).is_known
    assert Assignment.awaited() != Assignment.nothing()


def test_f37_number_beyond_the_topic_then_is_refused_by_name_and_count() -> None:
    """A number is within the topic or the assignment as a whole is refused."""
    given = Assignment.of_metadata([49, 50, 999])
    with pytest.raises(InvalidArgument, match=r"no metadata partition 50, 999: .* has 50,"):
        given.require_within(COUNT)
    given.require_within(1_000)


@pytest.mark.parametrize("count", [1, 16, 50], ids=str)
def test_f44_needed_partitions_then_follow_from_the_real_count(count: int) -> None:
    """The metadata partitions to read follow from the topic's real partition count."""
    given = [tp("orders", number) for number in range(20)]
    needed = Assignment.of_user(given).metadata_partitions(count)
    assert needed == {metadata_partition_for(one.topic_id, one.partition, count) for one in given}
    assert max(needed) < count


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Assignment.everything(), "all"),
        (Assignment.nothing(), "none"),
        (Assignment.awaited(), "an assignment that is not known yet"),
        (Assignment.of_metadata([1, 2]), "2 metadata partitions"),
        (Assignment.of_user([HERE]), "1 user partitions"),
        (
            Assignment(frozenset({1}), frozenset({HERE})),
            "1 metadata partitions and 1 user partitions",
        ),
    ],
    ids=["all", "none", "awaited", "metadata", "user", "both"],
)
def test_assignment_in_words_then_says_how_much(given: Assignment, words: str) -> None:
    """A message names an assignment without listing all of it."""
    assert str(given) == words


def test_needed_partitions_when_it_grows_then_new_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each message of a growing assignment costs only the partitions that it adds."""
    asked: list[int] = []

    def counted(topic_id: bytes, partition: int, count: int) -> int:
        asked.append(partition)
        return metadata_partition_for(topic_id, partition, count)

    monkeypatch.setattr(assignment, "metadata_partition_for", counted)
    before, has = Assignment.of_user([]), [tp("orders", number) for number in range(200)]
    assert before.metadata_partitions(COUNT) == frozenset()
    for start in range(0, len(has), 10):
        after = Assignment.of_user(has[: start + 10])
        asked.clear()
        needed = after.metadata_partitions(COUNT, before)
        assert len(asked) == 10
        assert needed == Assignment.of_user(has[: start + 10]).metadata_partitions(COUNT)
        asked.clear()
        assert after.metadata_partitions(COUNT) == needed
        assert asked == []
        before = after
    for fewer, looked_at in ((has[5:], 5), (has[:3], 3), ([], 0), (has[150:160], 10)):
        after = Assignment.of_user(fewer)
        asked.clear()
        needed = after.metadata_partitions(COUNT, before)
        assert len(asked) == looked_at
        assert needed == Assignment.of_user(fewer).metadata_partitions(COUNT)
        of_seven = Assignment.of_user(fewer).metadata_partitions(7)
        assert after.metadata_partitions(7, before) == of_seven
        before = after


def test_assignment_when_made_twice_then_is_equal() -> None:
    """Order and repetition make no difference: the same wish changes nothing."""
    assert Assignment.of_metadata([2, 1, 2]) == Assignment.of_metadata([1, 2])
    assert Assignment.everything() != Assignment.nothing()


@pytest.mark.parametrize(
    ("numbers", "match"),
    [
        pytest.param([-1, 5, -3], "no metadata partition -3, -1", id="negative"),
        *(
            pytest.param([0, number], f"number from 0, got {number!r}", id=repr(number))
            for number in (1.5, True, "1", None)
        ),
    ],
)
def test_f37_metadata_partition_when_no_number_then_refused(numbers: list[Any], match: str) -> None:
    """The assignment refuses an impossible metadata partition by name before it reaches the log."""
    with pytest.raises(InvalidArgument, match=match):
        Assignment.of_metadata(numbers)
