"""Every question by HTTP: the answer is the engine's, each refusal has its status and fields."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.errors import Stopped
from rlmm.metadata.assignment import Assignment
from rlmm.metadata.segment import PartitionDeleteState
from rlmm.views.segment import segment_view
from rlmm.views.values import plain
from tests.support.builders import finished, partition_delete, segment_id, started, tp
from tests.support.engines import World, until, until_open
from tests.support.server.http_servers import HttpClient, of, process_of, showing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from rlmm.engine.engine import Engine
    from rlmm.metadata.segment import SegmentMetadata

PLACES = 3
ORDERS = tp("orders", 7)
FIRST, SECOND, OPEN = (segment_id(name, ORDERS) for name in ("first", "second", "open"))


@asynccontextmanager
async def serving(
    http: Mapping[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[World, Engine, HttpClient]]:
    world = World(PLACES)
    world.store(
        started(
            FIRST,
            0,
            99,
            {0: 0, 3: 50},
            custom_metadata=b"\x00\xff",
            max_timestamp_ms=1_700_000_000_123,
        ),
        finished(FIRST, custom_metadata=b"\x00\xff"),
        started(SECOND, 100, 199, {3: 100}, txn_index_empty=True),
        finished(SECOND),
        started(OPEN, 200, 2**62, {3: 200}),
    )
    async with world.engine(**options) as engine:
        if engine.assignment == Assignment.everything():
            await until_open(engine, *range(PLACES))
        async with showing(engine, **(http or {})) as client:
            yield world, engine, client


async def test_questions_when_answered_then_each_answer_is_the_engines() -> None:
    """Each question shows the engine's whole answer, with exact large offsets."""
    async with serving() as (_, engine, client):
        reads = engine.reads
        txn = reads.next_segment_with_txn_index(ORDERS, 3, 0)
        shown: list[tuple[str, dict[str, object], SegmentMetadata | None]] = [
            ("segment", {"segment_id": FIRST.uuid}, reads.segment(FIRST)),
            ("segment", {"segment_id": OPEN.uuid}, reads.segment(OPEN)),
            ("segment", {"segment_id": segment_id("never").uuid}, None),
            ("segment-for", {"epoch": 3, "offset": 60}, reads.segment_for(ORDERS, 3, 60)),
            ("segment-for", {"epoch": 3, "offset": 5_000}, None),
            ("next-segment-with-txn-index", {"epoch": 3, "offset": 0}, txn),
        ]
        for name, parameters, segment in shown:
            answer = await client.get(f"/v1/{name}", **of(ORDERS, **parameters))
            expected = None if segment is None else plain(segment_view(segment))
            assert (answer.status, answer.shown) == (200, {"segment": expected}), name
        first = (await client.get("/v1/segment", **of(ORDERS, segment_id=FIRST.uuid))).shown[
            "segment"
        ]
        assert first["state"] == "COPY_SEGMENT_FINISHED"
        assert (first["custom_metadata"], first["custom_metadata_bytes"]) == ("AP8=", 2)
        assert first["max_timestamp"] == "2023-11-14T22:13:20.123Z"
        figures: list[tuple[str, dict[str, object], dict[str, object]]] = [
            ("highest-offset", {"epoch": 3}, {"highest_offset": 199}),
            ("highest-offset", {"epoch": 9}, {"highest_offset": None}),
            ("size", {}, {"size_bytes": 3 * 1024}),
            ("size", {"epoch": 0}, {"size_bytes": 1024}),
            ("partition-delete", {}, {"partition_delete": None}),
            ("ready", {}, {"is_ready": True}),
        ]
        for name, parameters, figure in figures:
            answer = await client.get(f"/v1/{name}", **of(ORDERS, **parameters))
            assert (answer.status, answer.shown) == (200, figure), name


async def test_partition_delete_when_there_is_one_then_it_is_shown() -> None:
    """The deletion of a user partition has Kafka's name of its state."""
    async with serving() as (world, engine, client):
        world.store(
            partition_delete(PartitionDeleteState.DELETE_PARTITION_MARKED, partition=ORDERS)
        )
        await until(lambda: engine.reads.partition_delete(ORDERS) is not None)
        answer = await client.get("/v1/partition-delete", **of(ORDERS))
        assert answer.shown["partition_delete"]["state"] == "DELETE_PARTITION_MARKED"


async def test_segments_for_when_some_are_refused_then_each_has_its_own_answer() -> None:
    """A look-up that is refused does not take the others with it; the order is kept."""
    async with serving() as (_, _, client):
        lookup = {"topic_id": str(ORDERS.topic_id), "topic": "orders", "partition": 7}
        body = {
            "lookups": [
                {**lookup, "epoch": 3, "offset": 150},
                {**lookup, "topic": "unheard", "epoch": 3, "offset": 1},
                {**lookup, "epoch": 3, "offset": 9_999},
                {**lookup, "epoch": -1, "offset": 1},
            ]
        }
        answers = (await client.ask("POST", "/v1/segments-for", body=body)).shown["answers"]
        assert answers[0]["segment"]["start_offset"] == 100
        assert (answers[1]["error"]["code"], answers[2]) == ("unknown-partition", {"segment": None})
        assert answers[3]["error"]["code"] == "invalid-argument"


@pytest.mark.parametrize(
    "body",
    [
        b"{", b"", b"[]", b'{"lookups": {}}', b'{"lookups": [7]}', b"[" * 100_000,
        b'{"lookups": [{"topic_id": "x", "topic": "t", "partition": 0, "epoch": 0, "offset": 0}]}',
        b'{"lookups": [], "more": 1}',
    ],
    ids=["cut", "empty", "array", "object", "number", "deep", "uuid", "unknown"],
)  # fmt: skip
async def test_segments_for_when_the_body_means_nothing_then_it_is_refused(body: bytes) -> None:
    """A wrong body is the client's error."""
    async with showing(process=process_of()) as client:
        answer = await client.ask("POST", "/v1/segments-for", body=body)
        assert (answer.status, answer.code) == (400, "invalid-argument")


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"offset": "1"}, "epoch"),
        ({"epoch": "x", "offset": "1"}, "epoch"),
        ({"epoch": "1", "offset": "-1"}, "offset"),
        ({"epoch": "1", "offset": str(2**63)}, "offset"),
        ({"epoch": "1", "offset": "\u0661"}, "offset"),
        ({"epoch": "1", "offset": "1", "offsets": "1"}, "offsets"),
        ({"epoch": "1", "offset": "1", "topic_id": "short"}, "topic_id"),
        ({"epoch": "1", "offset": "1", "at_least": "7"}, "at_least"),
        ({"epoch": "1", "offset": "1", "linearizable": "yes"}, "linearizable"),
        ({"epoch": "1", "offset": "1", "timeout_ms": "3600000"}, "timeout_ms"),
    ],
)
async def test_questions_when_a_parameter_means_nothing_then_it_is_named(
    parameters: dict[str, str], said: str
) -> None:
    """The error names a missing, wrong or unknown parameter."""
    async with serving() as (_, _, client):
        answer = await client.get("/v1/segment-for", **{**of(ORDERS), **parameters})
        assert (answer.status, answer.code) == (400, "invalid-argument")
        assert said in answer.shown["error"]["message"]


async def test_questions_when_refused_then_the_status_says_how() -> None:
    """Unknown, not assigned and not ready differ by status, code and fields."""
    world = World(PLACES)
    ours, behind = world.partition_on(0), world.partition_on(1)
    world.store(started(segment_id("b", behind)))
    world.script.stall(1)
    async with (
        world.engine(assignment=Assignment.of_metadata([0, 1])) as engine,
        showing(engine) as client,
    ):
        await until_open(engine, 0)
        await until(lambda: engine.standing().progress[1].target == 1)
        unknown = await client.get("/v1/size", **of(ours))
        assert (unknown.status, unknown.code) == (404, "unknown-partition")
        foreign = await client.get("/v1/size", **of(world.partition_on(2)))
        assert (foreign.status, foreign.code) == (421, "not-assigned")
        assert foreign.shown["error"]["fields"] == {"metadata_partition": 2}
        late = await client.get("/v1/size", **of(behind))
        assert (late.status, late.code) == (503, "not-ready")
        assert int(late.headers["Retry-After"]) >= 1
        fields = late.shown["error"]["fields"]
        assert (fields["position"], fields["target"], fields["records_left"]) == (0, 1, 1)
        assert late.shown["error"]["retriable"] is True
        assert (await client.get("/v1/ready", **of(behind))).shown == {"is_ready": False}
        soon = await client.get("/v1/ready", **of(behind, timeout_ms=1))
        assert soon.shown == {"is_ready": False}
        engine.refuse(Stopped, "the service is stopping")
        ended = await client.get("/v1/size", **of(ours))
        assert (ended.status, ended.code) == (503, "stopped")


async def test_ready_when_it_may_wait_then_it_answers_as_soon_as_that_is_so() -> None:
    """A request that waits for readiness is answered as soon as the partition is ready."""
    world = World(PLACES)
    partition = world.partition_on(1)
    world.store(started(segment_id("b", partition)))
    world.script.stall(1)
    async with world.engine() as engine, showing(engine) as client:
        await until_open(engine, 0, 2)
        asyncio.get_running_loop().call_later(0.02, world.script.resume, 1)
        answer = await client.get("/v1/ready", **of(partition, timeout_ms=50_000))
        assert answer.shown == {"is_ready": True}


async def test_questions_when_they_must_be_fresh_then_they_wait_for_it() -> None:
    """`at_least` and `linearizable` show earlier writes; a token works at other services."""
    async with serving() as (world, engine, client):
        place = world.place(ORDERS)
        later = segment_id("later", ORDERS)
        offset = world.store(started(later, 500, 599))
        at_least = f"{place}:{offset}"
        answer = await client.get(
            "/v1/segment", **of(ORDERS, segment_id=later.uuid, at_least=at_least)
        )
        assert answer.shown["segment"]["start_offset"] == 500
        token = (await client.get("/v1/read-token")).shown
        assert token["read_token"][str(place)] == offset
        assert at_least in token["at_least"].split(",")
        newest = segment_id("newest", ORDERS)
        world.script.stall(place)
        world.store(started(newest, 600, 699))
        asking = asyncio.create_task(
            client.get("/v1/segment", **of(ORDERS, segment_id=newest.uuid, linearizable="true"))
        )
        await until(lambda: engine.statistics().barrier.waiting == 1 or asking.done())
        world.script.resume(place)
        assert (await asking).shown["segment"]["start_offset"] == 600
        behind = await client.get("/v1/size", **of(ORDERS, at_least=f"{place}:99999", timeout_ms=1))
        assert (behind.status, behind.shown["error"]["fields"]["reason"]) == (503, "behind")
        all_of = await client.get("/v1/size", **of(ORDERS, at_least=token["at_least"]))
        assert all_of.status == 200
        assert engine.statistics().barrier.waiting == 0


async def test_questions_when_several_clusters_are_served_then_one_must_be_named() -> None:
    """A request must name its cluster by name or id, and never gets an answer of another one."""
    one, other = World(PLACES), World(PLACES)
    one.store(started(FIRST))
    async with one.engine() as first, other.engine() as second:
        await until_open(first, *range(PLACES))
        await until_open(second, *range(PLACES))
        async with showing(process=process_of(prod=first, test=second)) as client:
            assert first.identity is not None
            assert (await client.get("/v1/size", **of(ORDERS))).code == "wrong-cluster"
            for cluster, status in (("prod", 200), ("test", 404), ("nobody", 404)):
                answer = await client.get("/v1/size", **of(ORDERS, cluster=cluster))
                assert answer.status == status, cluster
            by_id = await client.get("/v1/read-token", cluster=first.identity.cluster_id)
            assert by_id.status == 200
            status = (await client.get("/v1/status")).shown
            assert [one["cluster"] for one in status["clusters"]] == ["prod", "test"]
            only = (await client.get("/v1/status", cluster="test")).shown
            assert [one["cluster"] for one in only["clusters"]] == ["test"]


async def test_status_when_asked_then_it_adds_up() -> None:
    """The totals are the sums over the metadata partitions, with segments by state."""
    async with serving() as (world, _, client):
        shown = (await client.get("/v1/status")).shown
        (cluster,) = shown["clusters"]
        assert shown["is_ready"]
        assert len(cluster["metadata_partitions"]) == PLACES
        place = cluster["metadata_partitions"][world.place(ORDERS)]
        assert (place["position"], place["user_partitions"]) == (5, 1)
        assert place["segments"] == {
            "COPY_SEGMENT_STARTED": 1, "COPY_SEGMENT_FINISHED": 2, "DELETE_SEGMENT_STARTED": 0,
        }  # fmt: skip
        assert cluster["totals"]["segments"] == place["segments"]
        assert (cluster["totals"]["offsets"]["applied"], cluster["log"]["kind"]) == (5, "MemoryLog")
        assert shown["process"]["version"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not-found"),
        ("GET", "/v1/../etc", 404, "not-found"),
        ("POST", "/v1/size", 405, "unknown-method"),
        ("DELETE", "/livez", 405, "unknown-method"),
    ],
)
async def test_paths_when_absent_then_json(method: str, path: str, status: int, code: str) -> None:
    """An unknown path is refused in the same JSON form."""
    async with showing(process=process_of()) as client:
        answer = await client.ask(method, path)
        assert (answer.status, answer.code) == (status, code)
