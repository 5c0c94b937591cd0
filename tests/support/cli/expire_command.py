"""`rlmm tier expire` for a place, called in this process, and the same by its own function."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.base.loop_thread import LoopThread
from rlmm.metadata.events import SegmentUpdate
from rlmm.metadata.ids import SegmentId, Uuid
from rlmm.metadata.segment import SegmentMetadata, SegmentState
from spark_tiering.maintenance.expire.decision import ExpireOptions
from spark_tiering.maintenance.expire.job import expire
from spark_tiering.maintenance.tier import CareRequest, Tier, TierTopics
from spark_tiering.maintenance.wiring import open_tier
from spark_tiering.tier_metadata.opening import open_metadata_access
from tests.support.tier.job_folders import ORDERS, TierPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from click.testing import Result

    from spark_tiering.maintenance.expire.report import ExpireReport
    from spark_tiering.tier_metadata.protocol import TierMetadata
    from tests.support.cli.tier_command import Command
    from tests.support.kafka.fake_cluster import FakeCluster

SIZES = 14_052, 14_842
WAIT_S = 10.0


def expired(tier: Command, *more: str, code: int = 0) -> Result:
    place = tier.place
    flags = ["--embedded", str(place.archive), *tier.store, "--no-spark"]
    result = tier("expire", *flags, *more)
    assert result.exit_code == code, result.output
    return result


def document(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def codes(told: dict[str, Any]) -> list[str]:
    return [one["code"] for one in told["findings"]]


@contextmanager
def writing(place: TierPlace) -> Iterator[TierMetadata]:
    assert place.metadata is not None
    metadata = open_metadata_access(place.metadata)
    try:
        yield metadata
    finally:
        metadata.close()


def moved(place: TierPlace, segment: SegmentMetadata, *to: SegmentState) -> None:
    with writing(place) as metadata:
        for state in to:
            event = SegmentUpdate(segment.id, -1, 1, segment.custom_metadata, state)
            metadata.publish(event, WAIT_S)


def run(place: TierPlace, later_ms: int = 0, cluster: FakeCluster | None = None,
        is_applied: bool = True, **said: Any) -> ExpireReport:  # fmt: skip
    request = CareRequest(embedded=place.archive, store=place.store_settings, prefix=place.prefix)
    now_ms = lambda: SYSTEM_CLOCK.now_ms() + later_ms  # noqa: E731
    with open_tier(request, now_ms=now_ms) as opened, pytest.MonkeyPatch.context() as patch:
        thread = LoopThread("told-cluster")
        try:
            told = None if cluster is None else TierTopics(cluster, thread)
            patch.setattr(Tier, "cluster", property(lambda _: told))
            return expire(opened, ExpireOptions(**said), is_applied=is_applied)
        finally:
            thread.close()


def opened(
    place: TierPlace, uuid: Uuid, start: int, last: int, size_bytes: int = 10, at_ms: int = 1
) -> SegmentMetadata:
    segment = SegmentMetadata(
        SegmentId(ORDERS, uuid), start, last, 9, 1_000, at_ms, ((4, start),), size_bytes
    )
    with writing(place) as metadata:
        metadata.publish(segment, WAIT_S)
    return segment
