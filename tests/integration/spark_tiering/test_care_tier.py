"""A tier for maintenance jobs: its present metadata, and the right to write it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from rlmm.errors import ConfigError
from rlmm.metadata.assignment import Assignment
from rlmm.state_sources.settings import SourceSettings
from spark_tiering.copy_plan.rules import SegmentSelection
from spark_tiering.maintenance.tier import CareRequest
from spark_tiering.maintenance.wiring import open_tier
from tests.support.builders import finished, segment_id, started, tp
from tests.support.engines import World
from tests.support.tier.metadata_accesses import serving

if TYPE_CHECKING:
    from pathlib import Path

ORDERS, LOGS = tp("orders", 0), tp("logs", 1)


def finish(request: CareRequest) -> tuple[list[str], list[str]]:
    with open_tier(request) as tier:
        before = [str(one.partition) for one in tier.moment().partitions()]
        writer = tier.writer()
        for partition in (ORDERS, LOGS):
            copy = segment_id("a", partition)
            writer.publish(started(copy, 0, 99, {0: 0}), 20)
            writer.publish(finished(copy), 20)
        moment = tier.moment()
        after = [
            f"{segment.id.partition.topic} {segment.start_offset} {segment.state.name}"
            for one in moment.partitions()
            for segment in moment.segments(one.partition)
        ]
        assert list(moment.segments(tp("nobody", 0))) == []
        if after:
            assert moment.state(ORDERS).segment_for(ORDERS, 0, 50) is not None
    return before, after


def test_tier_when_its_log_is_embedded_then_each_moment_is_of_now(tmp_path: Path) -> None:
    """An embedded log begins empty, and the next image has each published event."""
    before, after = finish(CareRequest(embedded=tmp_path / "archive"))
    assert before == []
    assert after == ["logs 0 COPY_SEGMENT_FINISHED", "orders 0 COPY_SEGMENT_FINISHED"]


async def test_tier_when_a_service_holds_it_then_the_same_is_seen() -> None:
    """A service shows the same tier by its frame protocol, without unwanted topics."""
    async with serving(World(3), assignment=Assignment.everything()) as settings:
        source = SourceSettings(sidecar=settings.address)
        request = CareRequest(source, topics=SegmentSelection(without_topics=("logs",)), wait_s=20)
        before, after = await asyncio.to_thread(finish, request)
    assert before == []
    assert after == ["orders 0 COPY_SEGMENT_FINISHED"]


def test_tier_when_its_log_is_a_copy_then_it_is_read_and_never_written(tmp_path: Path) -> None:
    """A tier in copied folders answers reads and refuses events."""
    finish(CareRequest(embedded=tmp_path / "archive"))
    copied = SourceSettings(log_dirs=(tmp_path / "archive/log",))
    with open_tier(CareRequest(copied)) as tier:
        assert len(tier.moment().partitions()) == 2
        assert tier.log.identity().cluster_id
        assert tier.cluster is None
        with pytest.raises(ConfigError, match="only looked at"):
            tier.writer()
        with pytest.raises(ConfigError, match="no store"):
            tier.store  # noqa: B018 - asking for it opens it


def test_request_when_two_sources_are_named_then_is_refused(tmp_path: Path) -> None:
    """An embedded log beside a service is refused, and beside a cluster allowed."""
    with pytest.raises(ConfigError, match="one of the two"):
        CareRequest(SourceSettings(sidecar="host:1"), tmp_path)
    beside = CareRequest(SourceSettings(bootstrap_servers="host:1"), tmp_path)
    assert beside.embedded == tmp_path
    nowhere = CareRequest()
    with pytest.raises(ConfigError, match="no metadata"):
        nowhere.require_source  # noqa: B018 - asking for it is the point
