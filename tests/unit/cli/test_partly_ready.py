"""Questions about one user partition where not all metadata partitions are ready."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rlmm.cli.common.query_run import QueryContext
from rlmm.cli.queries.segment_answer import find_answer
from rlmm.errors import LogUnavailable, NotReady
from rlmm.inspection.selectors import parse_partition, parse_topic_partitions
from rlmm.metadata.assignment import Assignment, place_of
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import partition_delete, segment_id
from tests.support.cli.service_source import looking_into
from tests.support.cli.state_commands import called
from tests.support.engines import World, until_open
from tests.support.kafka.kafka_sources import COUNT, NUMBERS, cluster_of, opened_source
from tests.support.logs.copied_folders import (
    copy_partition,
    events_of,
    opened_folders,
    user_partition,
    write_ours,
)
from tests.support.virtual_time import VirtualTimeLoop

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

    from rlmm.state_sources.protocol import StateSource

HERE = next(one for one in NUMBERS if place_of(user_partition(one), COUNT) == 1)
ELSEWHERE = next(one for one in NUMBERS if place_of(user_partition(one), COUNT) != 1)


class Copied(NamedTuple):
    folder: Path

    def asked(self, *words: str) -> Result:
        where = ("--log-dirs", str(self.folder), "--partition-count", str(COUNT))
        return called(*words, *where)


@pytest.fixture
async def copied(tmp_path: Path) -> Copied:
    await write_ours(tmp_path / "all", events_of(NUMBERS), COUNT)
    copy_partition(tmp_path / "all", 1, tmp_path / "some")
    return Copied(tmp_path / "some")


def of_one(number: int) -> list[tuple[str, ...]]:
    uuid = str(segment_id(1, user_partition(number)).uuid)
    return [
        ("segments", "find", f"orders-{number}", "--offset", "5"),
        ("segments", "describe", f"orders-{number}/{uuid}"),
        ("segments", "list", "--topic-partitions", f"orders:{number}"),
        ("segments", "list", "--topic-partitions", f"orders:{number}", "--at", "now"),
    ]


@pytest.mark.parametrize("words", of_one(HERE), ids=" ".join)
def test_one_when_its_place_is_copied_then_answered(copied: Copied, words: tuple[str, ...]) -> None:
    """The answer needs only the metadata partition of its subject to be copied."""
    result = copied.asked(*words)
    assert (result.exit_code, result.stdout.count('"segment_id"')) == (0, 1), result.stderr
    assert '"as_of_offsets": {"1": ' in result.stdout, "what it stands on"


def test_one_when_its_place_is_copied_then_a_note_names_the_others(
    copied: Copied, caplog: pytest.LogCaptureFixture
) -> None:
    """A note names the metadata partitions that were not read."""
    copied.asked("segments", "find", f"orders-{HERE}", "--offset", "5")
    assert "not looked at, because it is not ready: metadata partition 0, 2;" in caplog.text


@pytest.mark.parametrize("words", of_one(ELSEWHERE), ids=" ".join)
def test_one_when_it_may_be_where_nobody_looked_then_not_ready(
    copied: Copied, words: tuple[str, ...]
) -> None:
    """A name that was not found may lie in an unread place, so the answer is not ready."""
    result = copied.asked(*words)
    assert (result.exit_code, result.stdout) == (4, ""), result.stderr
    assert len(result.stderr.splitlines()) == 1, result.stderr


async def test_one_when_what_is_found_was_deleted_then_not_ready(tmp_path: Path) -> None:
    """A deleted topic is not ready, because a newer one may lie in an unread partition."""
    mark = partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, user_partition(HERE))
    await write_ours(tmp_path / "all", [*events_of(NUMBERS), mark], COUNT)
    copy_partition(tmp_path / "all", 1, tmp_path / "some")
    async with opened_folders(tmp_path / "some", partition_count=COUNT) as source:
        with pytest.raises(NotReady, match="were not copied"):
            await found(source, HERE)
        label = parse_partition(str(user_partition(HERE)))
        assert await QueryContext(source, 0).partition(label) == user_partition(HERE), "by its id"


def test_several_when_not_all_are_copied_then_not_ready(copied: Copied) -> None:
    """A pattern means every partition that it fits, wherever that is."""
    uuid = str(segment_id(1, user_partition(HERE)).uuid)
    for words in (
        ("list",),
        ("list", "--topic-partitions", "orders"),
        ("list", "--topic-partitions", f"orders:{HERE}-{HERE + 2}"),
        ("list", "--topic-partitions", f"ord.*:{HERE}"),
        ("describe", uuid[:8]),
    ):
        assert copied.asked("segments", *words).exit_code == 4, words


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("orders:3", True),
        (r"shop.or\.ders_1:0", True),
        ("orders", False),
        (":3", False),
        ("orders:3-5", False),
        ("orders:3-", False),
        ("orders.*:3", False),
        ("orders|payments:3", False),
        (r"order\w:3", False),
        ("orders:3,payments:3", False),
    ],
)
def test_topic_partitions_when_one_is_named_then_it_is_told_from_patterns(
    text: str, is_one: bool
) -> None:
    """One name with one number is a user partition, and any other form is a pattern."""
    assert parse_topic_partitions(text).is_of_one is is_one


# ------------------------------------------------------------------------- the other two sources


async def found(source: StateSource, number: int) -> bool:
    looking = QueryContext(source, 0, timeout_s=3.0)
    answer = await find_answer(
        looking, label=parse_partition(f"orders-{number}"), offset=5, time_ms=None, epoch=None,
        prefix="",
    )  # fmt: skip
    return answer.exit_code == 0


def test_kafka_when_a_metadata_partition_has_no_leader_then_the_others_are_answered() -> None:
    """A metadata partition without a leader affects only its own user partitions."""

    async def ask() -> None:
        kafka = cluster_of(events_of(NUMBERS))
        kafka.lead(place_of(user_partition(ELSEWHERE), COUNT), -1)
        async with opened_source(kafka, timeout_s=3.0) as source:
            assert await found(source, HERE)
            with pytest.raises(NotReady, match="is not where it can be looked for"):
                await found(source, ELSEWHERE)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(ask())


def test_kafka_when_nobody_answers_then_it_is_not_waited_for_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The command reports an unreachable cluster after one timeout, not two."""

    async def standing() -> None:
        raise AssertionError("asked once more how it stands")

    async def ask() -> None:
        kafka = cluster_of(())
        kafka.stop(0)
        async with opened_source(kafka, timeout_s=3.0) as source:
            monkeypatch.setattr(source, "standing", standing)
            with pytest.raises(LogUnavailable):
                await found(source, HERE)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(ask())


async def test_service_when_it_answers_for_some_then_these_are_found() -> None:
    """A service that holds a part answers for that part."""
    world = World(COUNT)
    world.store(*events_of(NUMBERS))
    mine = Assignment.of_user([user_partition(HERE)])
    async with looking_into(world, is_ready=False, assignment=mine) as (source, engine, _):
        await until_open(engine, 1)
        assert await found(source, HERE)
        with pytest.raises(NotReady, match="is not-assigned"):
            await found(source, ELSEWHERE)
