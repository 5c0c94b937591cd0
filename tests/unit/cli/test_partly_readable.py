"""Queries where not every metadata partition is there, or ready."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rlmm.cli.common.partial_metadata import readable
from rlmm.cli.common.query_run import QueryContext
from rlmm.cli.queries.explain_answer import ExplainQuestion, explain_answer
from rlmm.cli.queries.history import history_answer
from rlmm.cli.queries.segment_answer import find_answer
from rlmm.errors import LogNotPermitted, LogUnavailable, NotReady
from rlmm.inspection.cluster_facts import TopicFacts
from rlmm.inspection.selectors import (
    parse_partition,
    parse_position,
    parse_subject,
    parse_topic_partitions,
)
from rlmm.metadata.assignment import Assignment, place_of
from rlmm.metadata.ids import Uuid
from rlmm.metadata.segment import PartitionDeleteState
from tests.support.builders import partition_delete, segment_id
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import document_of, looking_at, valid_document_of
from tests.support.cli.metadata_history import History
from tests.support.cli.service_source import looking_into
from tests.support.cli.state_commands import called
from tests.support.engines import World, until_open
from tests.support.kafka.fake_cluster import FakeCluster
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
NOT_LOOKED_AT = "not looked at, because its log cannot be read: metadata partition 0, 2;"
UNKNOWN = str(Uuid.of(9, 9))


def id_of(number: int) -> str:
    return str(segment_id(1, user_partition(number)).uuid)


OF_HERE = (
    ("segments", "find", f"orders-{HERE}", "--offset", "5"),
    ("segments", "describe", f"orders-{HERE}/{id_of(HERE)}"),
    ("segments", "list", "--topic-partitions", f"orders:{HERE}"),
    ("segments", "list", "--topic-partitions", f"orders:{HERE}", "--at", "now"),
)
ELSEWHERE = next(one for one in NUMBERS if place_of(user_partition(one), COUNT) != 1)


class Copied(NamedTuple):
    folder: Path

    def asked(self, *words: str, output: str = "json") -> Result:
        where = ("--log-dirs", str(self.folder), "--partition-count", str(COUNT))
        return called(*words, *where, output=output)


@pytest.fixture(params=[NUMBERS])
async def copied(tmp_path: Path, request: pytest.FixtureRequest) -> Copied:
    await write_ours(tmp_path / "all", events_of(request.param), COUNT)
    copy_partition(tmp_path / "all", 1, tmp_path / "some")
    return Copied(tmp_path / "some")


@pytest.mark.parametrize("words", OF_HERE, ids=" ".join)
def test_one_when_its_place_is_copied_then_answered(
    copied: Copied, words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The answer needs only the metadata partition of its subject; a note names the others."""
    result = copied.asked(*words)
    assert (result.exit_code, result.stdout.count('"segment_id"')) == (0, 1), result.stderr
    assert '"as_of_offsets": {"1": ' in result.stdout, "what it stands on"
    assert "not looked at, because it is not ready: metadata partition 0, 2;" in caplog.text


@pytest.mark.parametrize(
    "words",
    [
        ("segments", "find", f"orders-{ELSEWHERE}", "--offset", "5"),
        ("segments", "describe", f"orders-{ELSEWHERE}/{id_of(ELSEWHERE)}"),
        ("segments", "describe", id_of(HERE)[:8]),
        ("segments", "list"),
        ("segments", "list", "--topic-partitions", f"orders:{ELSEWHERE}"),
        ("segments", "list", "--topic-partitions", f"orders:{ELSEWHERE}", "--at", "now"),
        ("segments", "list", "--topic-partitions", "orders"),
        ("segments", "list", "--topic-partitions", f"orders:{HERE}-{HERE + 2}"),
        ("segments", "list", "--topic-partitions", f"ord.*:{HERE}"),
        ("explain", f"orders-{ELSEWHERE}@5"),
        ("history", f"orders-{ELSEWHERE}"),
        ("history", str(user_partition(ELSEWHERE))),
        ("history", UNKNOWN),
        ("history", f"orders-{HERE}", "--metadata-partition", "0"),
        ("events", "--topic-partitions", f"orders:{ELSEWHERE}"),
        ("events", "--segment-id", UNKNOWN),
        ("events", "--topic-partitions", f"orders:{HERE}", "--partition", "0"),
        ("events", "--topic-partitions", f"orders:{HERE}", "--partition", "0", "--partition", "1"),
        ("events", "--topic-partitions", "orders"),
        ("events",),
    ],
    ids=" ".join,
)
def test_what_may_be_where_nobody_looked_when_asked_for_then_not_ready(
    copied: Copied, words: tuple[str, ...]
) -> None:
    """A name or pattern that may lie in an unread place is not ready."""
    result = copied.asked(*words)
    assert (result.exit_code, result.stdout) == (4, ""), result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("rlmm: not-ready: ")
    if words[0] in {"history", "events"}:
        assert "has no folder" in line
        assert "--wait" not in line


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
            with pytest.raises(NotReady, match="not in the metadata partitions that can be read"):
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


async def test_service_when_it_answers_for_some_then_these_are_found_and_the_log_is_searched() -> (
    None
):
    """A service answers for its part, and its log gives the history of every partition."""
    world = World(COUNT)
    world.store(*events_of(NUMBERS))
    mine = Assignment.of_user([user_partition(HERE)])
    async with looking_into(world, is_ready=False, assignment=mine) as (source, engine, _):
        await until_open(engine, 1)
        assert await found(source, HERE)
        with pytest.raises(NotReady, match="is not-assigned"):
            await found(source, ELSEWHERE)
        looking = QueryContext(source, 0, timeout_s=3.0)
        for number in (HERE, ELSEWHERE):
            answer = await history_answer(looking, what=parse_subject(f"orders-{number}"))
            assert len((await document_of(answer))["items"]) == 2
        here, elsewhere = (
            ExplainQuestion(*parse_position(f"orders-{number}@5")) for number in (HERE, ELSEWHERE)
        )
        assert (await explain_answer(looking, asking=here)).exit_code == 0
        with pytest.raises(NotReady):
            await explain_answer(looking, asking=elsewhere)


# ------------------------------------------------------------------- some folders were not copied


@pytest.mark.parametrize(
    "words",
    [
        ("history", f"orders-{HERE}"),
        ("history", f"orders-{HERE}/{id_of(HERE)}"),
        ("events", "--topic-partitions", f"orders:{HERE}"),
        ("events", "--topic-partitions", f"orders:{HERE}", "--no-verdicts"),
    ],
    ids=" ".join,
)
def test_one_when_its_place_is_copied_then_answered_with_a_note(
    copied: Copied, words: tuple[str, ...]
) -> None:
    """The answer is complete, and a note names the unread metadata partitions."""
    result = copied.asked(*words)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    require_valid(document)
    assert len(document["items"]) == 2
    assert document["as_of_offsets"].keys() == {"1"}
    assert [note for note in document["notes"] if note.startswith(NOT_LOOKED_AT)]
    table = copied.asked(*words, output="table")
    assert "2 events: 2 " in table.stdout, table.stderr
    assert "not looked at" not in table.stdout, "standard error has the note"


@pytest.mark.parametrize("copied", [[HERE]], indirect=True)
@pytest.mark.parametrize("command", [("history",), ("events", "--segment-id")])
def test_id_when_its_place_is_copied_then_answered(
    copied: Copied, command: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The segment of an id is found, and standard error names the unread places."""
    result = copied.asked(*command, id_of(HERE))
    assert NOT_LOOKED_AT in caplog.text
    assert result.exit_code == 0, result.stderr
    assert len(json.loads(result.stdout)["items"]) == 2


def test_events_when_none_of_a_partition_that_is_there_is_meant_then_none_are_shown(
    copied: Copied,
) -> None:
    """The command finds the partition, and prints no event because none matches the filter."""
    result = copied.asked(
        "events", "--topic-partitions", f"orders:{HERE}", "--verdict", "rejected"
    )  # fmt: skip
    assert (result.exit_code, json.loads(result.stdout)["items"]) == (0, []), result.stderr


def test_explain_when_another_place_is_not_copied_then_answered_with_a_note(
    copied: Copied, caplog: pytest.LogCaptureFixture
) -> None:
    """Only the metadata partition of the requested user partition must be readable."""
    result = copied.asked("explain", f"orders-{HERE}@5")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["explained"]["segment"]["segment_id"]
    assert "not looked at, because it is not ready: metadata partition 0, 2;" in caplog.text


async def test_explain_when_the_cluster_says_the_topic_then_others_may_lack(copied: Copied) -> None:
    """The topic's place is read and has no event of it, and a note names the rest."""
    new = next(
        one for one in (user_partition(number, "new") for number in NUMBERS)
        if place_of(one, COUNT) == 1
    )  # fmt: skip
    cluster = FakeCluster({"new": TopicFacts("new", new.topic_id, {})})
    async with opened_folders(copied.folder, partition_count=COUNT) as source:
        source.cluster = cluster  # type: ignore[assignment]
        label, offset = parse_position(f"new-{new.partition}@5")
        answer = await explain_answer(
            QueryContext(source, 0), asking=ExplainQuestion(label, offset)
        )
        source.cluster = None
    document = await valid_document_of(answer)
    assert [note[:36] for note in document["notes"]] == ["other topics of the same name were n"]
    assert document["items"]


# ------------------------------------------------------------------------- the other two sources


def test_history_when_a_metadata_partition_has_no_leader_then_others_are_searched() -> None:
    """The search skips a metadata partition without a leader and names it."""

    async def ask() -> None:
        kafka = cluster_of(events_of([HERE]))
        kafka.lead(0, -1)
        async with opened_source(kafka, timeout_s=3.0) as source:
            looking = QueryContext(source, 0, timeout_s=3.0)
            answer = await history_answer(looking, what=parse_subject(f"orders-{HERE}"))
            assert len((await document_of(answer))["items"]) == 2
            with pytest.raises(NotReady, match="metadata partition 0 cannot be read") as raised:
                await history_answer(looking, what=parse_subject(UNKNOWN))
            assert (raised.value.reason, raised.value.metadata_partition) == ("partly", 0)
            with pytest.raises(LogUnavailable):
                await history_answer(looking, what=parse_subject(UNKNOWN), place=0)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(ask())


async def test_readable_when_it_is_not_permitted_then_that_is_not_stepped_over() -> None:
    """Missing rights are the caller's to mend, and end the command."""
    looking = looking_at(History())
    bounds = looking.source.log.bounds

    async def some(places: list[int], *, timeout_s: float) -> object:
        return {**await bounds(places, timeout_s=timeout_s), 1: LogNotPermitted("no right")}

    looking.source.log.bounds = some  # type: ignore[method-assign, assignment]
    with pytest.raises(LogNotPermitted):
        await readable(looking, [0, 1], may_lack=True)
