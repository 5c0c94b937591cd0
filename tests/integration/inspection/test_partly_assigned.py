"""Commands answer for the assigned metadata partitions of a service, and claim nothing else."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.cli.common.query_run import QueryContext
from rlmm.cli.queries.lag import lag_answer, offsets_answer
from rlmm.cli.queries.preflight import reassign_answer
from rlmm.errors import NotReady
from rlmm.inspection.cluster_facts import LogDir, PartitionPlace, TopicFacts
from rlmm.inspection.source_status import NOT_ASSIGNED
from rlmm.metadata.assignment import Assignment, place_of
from tests.support.builders import TOPIC_ID, finished, segment_id, started, tp
from tests.support.cli.json_schemas import require_valid
from tests.support.cli.memory_source import document_of
from tests.support.cli.service_source import asking, served_world, world_of
from tests.support.cli.state_commands import called
from tests.support.engines import World, until, until_open
from tests.support.kafka.fake_cluster import FakeCluster, settings
from tests.support.kafka.kafka_sources import COUNT, NUMBERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection
    from pathlib import Path

    from rlmm.metadata.events import Event
    from rlmm.metadata.ids import SegmentId
    from rlmm.state_sources.sidecar_source import ServiceStateSource
    from tests.support.engines import World

PLACE = 1
HERE = [one for one in NUMBERS if place_of(tp("orders", one), COUNT) == PLACE]
ELSEWHERE = [one for one in NUMBERS if one not in HERE]
NOTE = (
    f"{COUNT - 1} of {COUNT} metadata partitions are not read by the service: it answers for "
    f"{Assignment.of_metadata([PLACE])}; --bootstrap-server shows all"
)
OF_ALL = (
    ("segments", "list"),
    ("segments", "list", "--topic-partitions", "orders"),
    ("usage",),
    ("verify",),
    ("stuck",),
    ("offsets",),
    ("check",),
)
"""Questions about everything, as many of one kind as differ in what they ask."""


def segment_of(number: int) -> SegmentId:
    return segment_id(number + 1, tp("orders", number))


def events() -> list[Event]:
    each = [(started(segment_of(one), 0, 99), finished(segment_of(one))) for one in NUMBERS]
    return [event for those in each for event in those]


@asynccontextmanager
async def beside_a_broker(places: Collection[int] = (PLACE,)) -> AsyncIterator[str]:
    world = world_of(*events(), partition_count=COUNT)
    assignment = Assignment.of_metadata(places)
    async with served_world(world, is_ready=False, assignment=assignment) as (engine, served):
        await until_open(engine, *places)
        yield str(served.path)


@asynccontextmanager
async def stalled(places: Collection[int]) -> AsyncIterator[tuple[World, str]]:
    world = world_of(*events(), partition_count=COUNT)
    for place in places:
        world.script.stall(place)
    assignment = Assignment.of_metadata(places)
    async with served_world(world, is_ready=False, assignment=assignment) as (engine, served):
        await until(lambda: engine.identity is not None)
        yield world, str(served.path)


async def told(address: str, *words: str, output: str = "json") -> Any:
    return await asyncio.to_thread(called, *words, "--sidecar", address, output=output)


@pytest.mark.parametrize("words", OF_ALL, ids=" ".join)
async def test_all_when_the_service_reads_some_then_these_are_told_with_a_note(
    words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The answer has exit code 0 and its note in the document."""
    async with beside_a_broker() as address:
        result = await told(address, *words)
    document = json.loads(result.stdout)
    require_valid(document)
    assert document["notes"][0] == NOTE
    assert document["notes"].count(NOTE) == 1
    assert result.exit_code == 0
    if words[0] != "check":  # whose note has always been one of its answer
        assert list(document["as_of_offsets"]) == [str(PLACE)]
        assert caplog.messages == [NOTE]
    if words[0] in {"segments", "offsets"}:
        assert sorted({one["partition"] for one in document["items"]}) == HERE


@pytest.mark.parametrize("output", ["table", "csv", "tsv", "jsonl", "yaml", "json"])
async def test_all_when_the_service_reads_some_then_every_output_says_so(
    output: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Rows have a note on standard error, and documents have it once inside."""
    async with beside_a_broker() as address:
        for words in (("segments", "list"), ("usage",), ("verify",)):
            caplog.clear()
            result = await told(address, *words, output=output)
            assert caplog.messages == [NOTE], words
            assert (NOTE in result.stdout) == (output in {"yaml", "json"}), words
            assert result.exit_code == 0, result.stdout


async def test_usage_when_the_service_reads_some_then_no_retention_is_called_safe() -> None:
    """A topic in an unread metadata partition may need longer, so no retention is safe."""
    async with beside_a_broker() as address:
        assert "metadata_topic" not in json.loads((await told(address, "usage")).stdout)
    async with beside_a_broker(range(COUNT)) as address:
        document = json.loads((await told(address, "usage")).stdout)
    assert document["metadata_topic"]["records"] == 2 * len(NUMBERS)
    assert NOTE not in document.get("notes", [])


async def test_all_when_the_broker_has_nothing_tiered_then_is_told_nothing_with_a_note() -> None:
    """A service whose broker has just started gives an empty answer with a note."""
    async with beside_a_broker(()) as address:
        result = await told(address, "segments", "list")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["items"], document["as_of_offsets"]) == (0, [], {})
    assert document["notes"][0].startswith(f"{COUNT} of {COUNT} metadata partitions are not read")


async def test_bundle_when_the_service_reads_some_then_has_these(tmp_path: Path) -> None:
    """The bundle has the same notes."""
    async with beside_a_broker() as address:
        result = await told(address, "support-bundle", "--file", str(tmp_path / "bundle.tar.gz"))
    document = json.loads(result.stdout)
    require_valid(document)
    assert (result.exit_code, document["notes"], document["not_asked"]) == (0, [NOTE], {})


def of_one(number: int) -> list[tuple[str, ...]]:
    partition = tp("orders", number)
    uuid = str(segment_of(number).uuid)
    return [
        ("segments", "find", f"orders-{number}", "--offset", "5"),
        ("segments", "find", str(partition), "--offset", "5"),
        ("segments", "describe", uuid),
        ("segments", "list", "--topic-partitions", f"orders:{number}"),
        ("explain", f"orders-{number}@5", "--no-history"),
    ]


@pytest.mark.parametrize("words", of_one(HERE[0]), ids=" ".join)
async def test_one_when_the_service_reads_its_place_then_answered(
    words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The service answers by name, by id and by segment; a note on a name says who has others."""
    async with beside_a_broker() as address:
        result = await told(address, *words)
    assert result.exit_code == 0, result.stderr
    if words[1] == "find" and ":" not in words[2]:
        assert caplog.messages == [f"{NOTE}; another topic of the same name may be there"]


@pytest.mark.parametrize(
    "words",
    [
        *of_one(ELSEWHERE[0])[:4],
        ("preflight", "delete", "orders"),
        ("segments", "describe", str(segment_of(HERE[0]).uuid)[:20]),
    ],
    ids=" ".join,
)
async def test_question_when_it_needs_what_the_service_does_not_read_then_is_refused(
    words: tuple[str, ...],
) -> None:
    """The command ends with 4, names the source to ask, and concludes nothing."""
    async with beside_a_broker() as address:
        result = await told(address, *words)
    assert (result.exit_code, result.stdout) == (4, "")
    (line,) = result.stderr.splitlines()
    assert line.startswith("rlmm: not-ready: ")
    assert "--bootstrap-server" in line
    if words in of_one(ELSEWHERE[0]):
        assert "is not-assigned: the service does not read it" in line
        assert line.endswith("; look in the topic itself with --bootstrap-server")


async def test_explain_when_the_service_does_not_read_the_place_then_says_that() -> None:
    """`explain` has a finding for the unread partition and no verdict on the offset."""
    async with beside_a_broker() as address:
        words = ("explain", f"{tp('orders', ELSEWHERE[0])}@5", "--no-history")
        result = await told(address, *words)
    codes = [one["code"] for one in json.loads(result.stdout)["items"]]
    assert (result.exit_code, codes) == (1, ["PARTITION-NOT-READ"])


@pytest.mark.parametrize(
    "words",
    [
        ("segments", "list", "--at", "now"),
        ("offsets", "--at", "now"),
        ("history", f"orders-{ELSEWHERE[0]}"),
        ("history", f"orders-{HERE[0]}"),
        ("events",),
        ("diff", "--from", "0:1,1:1,2:1"),
        ("rehearse-compaction",),
    ],
    ids=" ".join,
)
async def test_past_when_the_service_reads_some_then_its_log_tells_of_all(
    words: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    """The log read through the service has the events of all partitions, assigned or not."""
    async with beside_a_broker() as address:
        result = await told(address, *words)
    assert result.exit_code in {0, 1}, result.stderr
    document = json.loads(result.stdout)
    assert NOTE not in [*document.get("notes", []), *caplog.messages]
    if words[0] in {"segments", "offsets", "events"}:
        assert {one["partition"] for one in document["items"]} == set(NUMBERS)


async def test_all_when_what_the_service_was_given_is_behind_then_refused() -> None:
    """The command refuses when an assigned partition is behind, and advises to wait."""
    async with stalled((PLACE,)) as (_, address):
        for words in (("segments", "list"), ("usage",), ("verify",), ("stuck",)):
            result = await told(address, *words)
            assert (result.exit_code, result.stdout) == (4, ""), words
            (line,) = result.stderr.splitlines()
            assert f"metadata partition {PLACE} is" in line
            assert line.endswith("; wait for it with --wait 30s")


def counting(source: ServiceStateSource) -> list[object]:
    asked: list[object] = []
    now = source.now

    def counted(places: Any = None, **how: Any) -> Any:
        asked.append(places)
        return now(places, **how)

    source.now = counted  # type: ignore[method-assign]
    return asked


async def test_all_when_what_the_service_was_given_is_behind_then_that_is_waited_for() -> None:
    """`--wait` waits for the assigned partitions only."""
    async with stalled((PLACE,)) as (world, address), asking(address) as source:
        asked = counting(source)
        waiting = asyncio.create_task(QueryContext(source, 0, wait_s=60).moment())
        await until(lambda: len(asked) == 2)
        world.script.resume(PLACE)
        moment = await waiting
    assert asked == [None, [PLACE]]
    assert list(moment.positions) == [PLACE]


async def test_one_when_some_are_behind_and_its_place_is_not_read_then_waiting_is_not_advised() -> (
    None
):
    """The error names the unread partition, because waiting does not help."""
    async with stalled((0,)) as (_, address):
        result = await told(address, "segments", "list", "--topic-partitions", "nothing:0")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "is not-assigned" in result.stderr
    assert "--wait" not in result.stderr


async def test_all_when_the_service_was_given_everything_and_is_behind_then_is_asked_once() -> None:
    """The command asks once, so the time of `--wait` is not spent twice."""
    async with stalled(range(COUNT)) as (_, address), asking(address) as source:
        asked = counting(source)
        with pytest.raises(NotReady):
            await QueryContext(source, 0).moment()
        assert asked == [None]


MINE = tp("orders", 7)
NOT_MINE = next(
    one for one in (tp("orders", number) for number in range(8, 40))
    if place_of(one, COUNT) != place_of(MINE, COUNT)
)  # fmt: skip


@asynccontextmanager
async def beside_the_cluster() -> AsyncIterator[QueryContext]:
    world = world_of(started("a", 0, 99), finished("a"), partition_count=COUNT)
    place = PartitionPlace(1, 3, (1, 2), (1, 2))
    orders = TopicFacts(
        "orders", TOPIC_ID, {MINE.partition: place, NOT_MINE.partition: place},
        settings(remote_storage_enable="true"),
    )  # fmt: skip
    on = settings(remote_log_storage_system_enable="true")
    cluster = FakeCluster(
        {"orders": orders}, {}, (1, 2), {1: on, 2: on},
        [LogDir(1, "/a", 10_000, 4_096, {("orders", MINE.partition): 1_000})],
    )  # fmt: skip
    assignment = Assignment.of_metadata([place_of(MINE, COUNT)])
    async with (
        served_world(world, is_ready=False, assignment=assignment) as (engine, served),
        asking(str(served.path)) as source,
    ):
        await until_open(engine, place_of(MINE, COUNT))
        source.cluster = cluster  # type: ignore[assignment]
        try:
            yield QueryContext(source, 0)
        finally:
            source.cluster = None


async def test_lag_when_the_service_reads_some_then_of_others_no_tier_is_not_said() -> None:
    """A metadata partition that was not read does not count as never copied."""
    async with beside_the_cluster() as looking:
        for answer in (
            await lag_answer(looking, topic=None, window_ms=1_000, shows_disks=False),
            await offsets_answer(looking, topic=None),
        ):
            document = await document_of(answer)
            found = [(one["partition"], one["tier_end"]) for one in document["items"]]
            assert found == [(MINE.partition, 99)], answer.kind
            assert document.get("totals", {}).get("first_full_in_s") is None
        assert len(looking.notes) == 1
        with pytest.raises(NotReady) as raised:
            await lag_answer(looking, topic=None, window_ms=1_000, shows_disks=True)
        assert raised.value.reason == NOT_ASSIGNED


async def test_preflight_of_a_move_when_the_service_reads_its_partitions_then_answered() -> None:
    """The check answers for partitions that the service reads, and refuses others."""
    async with beside_the_cluster() as looking:
        mine, every = str(MINE.partition), None
        answer = await reassign_answer(looking, topic="orders", partitions=mine, to_brokers=None)
        assert list((await document_of(answer))["as_of_offsets"]) == [str(place_of(MINE, COUNT))]
        for partitions in (str(NOT_MINE.partition), every):
            with pytest.raises(NotReady, match="is not-assigned"):
                await reassign_answer(
                    looking, topic="orders", partitions=partitions, to_brokers=None
                )
