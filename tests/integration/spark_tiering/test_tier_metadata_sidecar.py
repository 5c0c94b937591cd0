"""Tier metadata by a service: assignment, rights, and concurrent changes."""

from __future__ import annotations

import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest
import trustme

from rlmm.errors import (
    AppendUncertain,
    ConfigError,
    NotAssigned,
    NotPermitted,
    NotReady,
    NotWritable,
    OutcomeUnknown,
    SidecarUnavailable,
    WrongCluster,
)
from rlmm.log.memory.partition import AppendOutcome
from rlmm.metadata.assignment import Assignment
from spark_tiering.tier_metadata import sidecar
from spark_tiering.tier_metadata.opening import open_metadata_access
from spark_tiering.tier_metadata.settings import SidecarAccess
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import World, until, until_open
from tests.support.server.access_files import ADMIN, Pki, write_tokens
from tests.support.server.frame_servers import listening
from tests.support.tier.metadata_accesses import BROKER_ID, COUNT, WAIT_S, opened, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from rlmm.engine.engine import Engine
    from rlmm.metadata.segment import SegmentMetadata

EVERYTHING = Assignment.everything()


def on(world: World, place: int, label: str = "one", start: int = 0) -> SegmentMetadata:
    return started(segment_id(label, world.partition_on(place)), start, start + 9)


@asynccontextmanager
async def encrypted(
    engine: Engine, folder: Path
) -> AsyncIterator[tuple[SidecarAccess, dict[str, Any]]]:
    pki = Pki(folder)
    ca_file, token_file = folder / "ca.pem", folder / "token"
    pki.authority.cert_pem.write_to_path(str(ca_file))
    token_file.touch(0o600)
    token_file.write_text(f"{ADMIN}\n")
    door = pki.door(tokens_file=write_tokens(folder / "tokens"))
    async with listening(engine, door=door, listen="127.0.0.1:0") as served:
        said: dict[str, Any] = {"ca_file": str(ca_file), "token_file": str(token_file)}
        yield SidecarAccess(f"127.0.0.1:{served.tcp[1]}", **said), said


async def test_image_when_something_was_stored_just_before_then_it_is_in_it() -> None:
    """An image contains an event stored just before by any client."""
    world = World(COUNT)
    async with serving(world, assignment=EVERYTHING) as settings, opened(settings) as access:
        for number in range(20):
            segment = on(world, 1, f"s{number}", number * 10)
            world.store(segment)
            image = await access.image([segment.id.partition], {}, WAIT_S)
            assert len(image.partitions[0].segments) == number + 1
            found = await access.segment(segment.id, WAIT_S)
            assert found == segment


async def test_image_when_not_all_is_assigned_then_the_rest_is_left_out_for_everybody() -> None:
    """An image leaves out unassigned partitions, and no event is stored there."""
    world = World(COUNT)
    first, second = on(world, 0), on(world, 1)
    neighbour = next(
        one for one in (tp("others", number) for number in range(99)) if world.place(one) == 0
    )
    world.store(first, second)
    only = Assignment.of_user([first.id.partition])
    async with serving(world, assignment=only) as settings, opened(settings) as access:
        asked = [first.id.partition, second.id.partition]
        image = await access.image(asked, {}, WAIT_S)
        assert [one.partition for one in image.partitions] == [first.id.partition]
        with pytest.raises(NotAssigned):
            await access.image([second.id.partition, neighbour], {}, WAIT_S)
        for refused in (second.id.partition, neighbour):
            with pytest.raises(NotAssigned):
                await access.publish(started(segment_id("new", refused)), WAIT_S)
            with pytest.raises(NotAssigned):
                await access.segment(segment_id("new", refused), WAIT_S)
    assert world.topic.partitions[1].next_offset == 1


async def test_sidecar_when_asked_as_a_broker_then_is_assigned_and_gives_it_back() -> None:
    """A service assigns partitions to an unannounced broker, and drops them when it leaves."""
    world = World(COUNT)
    segment = on(world, 2)
    world.store(segment)
    async with (
        world.engine(assignment=Assignment.awaited()) as engine,
        listening(engine, follows_brokers=True) as served,
    ):
        settings = SidecarAccess(str(served.path), broker_id=BROKER_ID)
        async with opened(settings) as access:
            image = await access.image([segment.id.partition], {}, WAIT_S)
            assert image.partitions[0].segments == (segment,)
            published = await access.publish(finished(segment.id), WAIT_S)
            assert published.verdict == "applied"
            assert segment.id.partition in engine.assignment.user
        await until(lambda: not engine.assignment.user, WAIT_S)


@pytest.mark.parametrize(
    ("service", "error"),
    [({"role": "reader"}, NotPermitted), ({"options": {"is_observer": True}}, NotWritable)],
    ids=["reader", "observer"],
)
async def test_sidecar_for_reading_only(service: dict[str, Any], error: type[Exception]) -> None:
    """A reader's role, or a service that only observes, gives images and stores no event."""
    world = World(COUNT)
    segment = on(world, 0)
    async with (
        serving(world, assignment=EVERYTHING, **service) as settings,
        opened(settings) as access,
    ):
        await access.image([segment.id.partition], {}, WAIT_S)
        with pytest.raises(error):
            await access.publish(segment, WAIT_S)


async def test_sidecar_by_tls_with_a_token_trusts_and_is_trusted(tmp_path: Path) -> None:
    """A sidecar over TLS accepts the right authority and token; errors hide a wrong token."""
    world = World(COUNT)
    other, wrong = tmp_path / "other.pem", tmp_path / "wrong"
    trustme.CA().cert_pem.write_to_path(str(other))
    async with world.engine(assignment=EVERYTHING) as engine:
        await until_open(engine, *range(COUNT))
        async with encrypted(engine, tmp_path) as (settings, said):
            async with opened(settings) as access:
                await access.publish(on(world, 0), WAIT_S)
            wrong.touch(0o600)
            wrong.write_text("nobody-has-this-token")
            with pytest.raises(NotPermitted) as caught:
                async with opened(
                    SidecarAccess(settings.address, **said | {"token_file": str(wrong)})
                ):
                    pass
            assert "nobody-has" not in str(caught.value)
            distrusting = SidecarAccess(settings.address, **said | {"ca_file": str(other)})
            with pytest.raises(SidecarUnavailable, match="certificate"):
                async with opened(distrusting):
                    pass


async def test_sidecar_when_it_serves_another_cluster_then_refused() -> None:
    """A service of another cluster is refused before the first question."""
    async with serving(World(COUNT), assignment=EVERYTHING, cluster_id="other") as settings:
        with pytest.raises(WrongCluster):
            async with opened(settings):
                pass


@pytest.mark.parametrize("outcome", [AppendOutcome.UNCERTAIN_STORED, AppendOutcome.UNCERTAIN_LOST])
async def test_f126_unclear_event_is_stored_once(outcome: AppendOutcome) -> None:
    """After an unclear append the event is stored only if the log lacks it."""
    world = World(COUNT)
    segment = on(world, 1)
    async with serving(world, assignment=EVERYTHING) as settings, opened(settings) as access:
        for event in (segment, finished(segment.id)):
            world.script.plan_appends(1, outcome)
            assert (await access.publish(event, WAIT_S)).metadata_partition == 1
        image = await access.image([segment.id.partition], {}, WAIT_S)
    (found,) = image.partitions
    assert [one.state.name for one in found.segments] == ["COPY_SEGMENT_FINISHED"]
    assert image.positions == {1: 2}


async def test_event_when_its_verdict_is_not_heard_in_time_then_unknown_and_where_it_is() -> None:
    """An event whose verdict is lost is unknown, and its place in the log is named."""
    world = World(COUNT)
    segment = on(world, 1)
    async with serving(world, assignment=EVERYTHING) as settings, opened(settings) as access:
        await access.image([segment.id.partition], {}, WAIT_S)
        world.script.stall(1)
        with pytest.raises((OutcomeUnknown, AppendUncertain)):
            await access.publish(segment, 0.6)
        world.script.resume(1)
        assert await access.segment(segment.id, WAIT_S) == segment
    assert world.topic.partitions[1].next_offset == 1


@pytest.mark.parametrize("kept", ["", "two tokens", "ä" * 20, "x" * 5_000])
def test_token_when_the_file_holds_none_is_refused_unseen(kept: str, tmp_path: Path) -> None:
    """An empty token file is refused in one line without its content."""
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_text(kept)
    before = set(threading.enumerate())
    with pytest.raises(ConfigError, match=str(path)) as caught:
        open_metadata_access(SidecarAccess("127.0.0.1:1", token_file=str(path)))
    assert not kept or kept not in str(caught.value)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("said", ["ca_file", "certificate_file"])
@pytest.mark.parametrize("kept", [None, b"no certificate"])
def test_unusable_tls_file_is_refused(said: str, kept: bytes | None, tmp_path: Path) -> None:
    """An unusable TLS file is refused in one line before any connection."""
    path = tmp_path / "file.pem"
    if kept is not None:
        path.write_bytes(kept)
    with pytest.raises(ConfigError, match=r"file\.pem"):
        open_metadata_access(SidecarAccess("127.0.0.1:1", **{said: str(path)}))  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="none"):
        open_metadata_access(SidecarAccess("127.0.0.1:1", token_file=str(tmp_path / "none")))


async def test_sidecar_when_it_has_not_reached_its_log_then_not_ready_in_time() -> None:
    """A service that has not read its log within the given time is reported as not ready."""
    world = World(COUNT)
    world.script.lose_brokers()
    async with serving(world, assignment=Assignment.nothing(), timeout_ms=3_000) as settings:
        with pytest.raises(NotReady):
            async with opened(settings):
                pass


@pytest.mark.parametrize(
    ("is_connected", "raised", "match"),
    [(True, NotReady, "no broker answers"), (False, SidecarUnavailable, "silent")],
)
def test_cut_question_tells_before(is_connected: bool, raised: type[Exception], match: str) -> None:
    """When the last question is cut off, the error holds the last answer before it."""
    answers: list[Any] = [{"last_trouble": "no broker answers"}, SidecarUnavailable("silent")]
    client = Mock()
    client.status.side_effect = answers
    client.statistics.return_value.is_connected = is_connected
    with pytest.raises(raised, match=match):
        sidecar.SidecarMetadata(client, is_broker=False, timeout_s=WAIT_S)
    client.close.assert_called_once_with()


async def test_image_when_its_time_is_up_then_not_ready() -> None:
    """An image past its deadline fails as not ready."""
    world = World(COUNT)
    async with serving(world, assignment=EVERYTHING) as settings, opened(settings) as access:
        with pytest.raises(NotReady):
            await access.image([tp(partition=at) for at in range(50)], {}, 1e-9)
