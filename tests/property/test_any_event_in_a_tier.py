"""The jobs of a tier over metadata in which anybody may have written anything."""

from __future__ import annotations

import asyncio
import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rlmm.cli.main import cli
from rlmm.log.files.files_log import FilesLog
from rlmm.metadata.encoding import encode_any
from rlmm.metadata.events import PartitionDelete, SegmentUpdate
from rlmm.metadata.ids import INT32_MAX, INT64_MAX, INT64_MIN, is_possible
from rlmm.metadata.segment import PartitionDeleteState, SegmentState
from tests.support.builders import segment_id, started, tp, update
from tests.support.engine.chosen import ChosenShard
from tests.support.records import strategies
from tests.support.stores.segment_objects import put_set, whole_segment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.testing import Result

    from rlmm.metadata.events import Event

PLACES = 1
CS, CF, DS, DF = SegmentState
ODD_NAMES = ("", ".", "..", "../../x", "a/b", "a\0b", "\x1b[31m", "a b", "\u00e9", 250 * "n")
NAMES = st.sampled_from((*ODD_NAMES, "orders", "logs")) | st.text(max_size=12)
INT32 = st.sampled_from((-(2**31), -1, 0, 1, INT32_MAX))
INT64 = st.sampled_from((INT64_MIN, -1, 0, 1, 10**13, INT64_MAX))
OFFSETS = st.sampled_from((0, 1, 50, 99, 100, 10**19 // 2, INT64_MAX - 1, INT64_MAX))
FIRST = whole_segment("good", 0, 99, event_timestamp_ms=1_000, max_timestamp_ms=1_000)
"""A segment as a broker copies it; its objects are in the store."""


@st.composite
def lives(draw: st.DrawFn) -> list[Event]:
    """Return the events of one segment, with any values, up to any state."""
    partition = tp(draw(NAMES), draw(INT32))
    start, last = sorted((draw(OFFSETS), draw(OFFSETS)))
    segment = started(
        segment_id(draw(st.integers(0, 3)), partition),
        start,
        last,
        epochs=draw(st.dictionaries(INT32, INT64, min_size=1, max_size=3)),
        broker_id=draw(INT32),
        max_timestamp_ms=draw(INT64),
        event_timestamp_ms=draw(INT64),
        size_bytes=draw(INT32),
        custom_metadata=draw(strategies.CUSTOM),
        txn_index_empty=draw(st.booleans()),
    )
    said: list[Event] = [segment]
    for state in (CF, DS, DF)[: draw(st.integers(0, 3))]:
        custom, at_ms = draw(strategies.CUSTOM), draw(INT64)
        said.append(
            SegmentUpdate(segment.id, segment.broker_id, at_ms, custom, state),
        )
    deletion = tuple(PartitionDeleteState)[: draw(st.sampled_from((0, 0, 0, 1, 2)))]
    said += [PartitionDelete(partition, draw(INT32), draw(INT64), state) for state in deletion]
    return said


class LogOfAnything:
    """An embedded log that holds any events, beside a store with the objects of one segment."""

    def __init__(self, folder: Path, events: Iterable[Event]) -> None:
        self.folder = folder
        self.archive, self.store = folder / "archive", folder / "store"
        self.store.mkdir()
        put_set(self.store, FIRST)
        good = replace(FIRST, state=CS)
        asyncio.run(self._write([good, update(FIRST.id, CF), *events]))

    async def _write(self, events: Iterable[Event]) -> None:
        log = await FilesLog.open(self.archive / "log", partition_count=PLACES)
        try:
            for event in events:
                await log.append(0, encode_any(event), timeout_s=60)
        finally:
            await log.close()

    def run(self, job: str, *flags: str) -> Result:
        embedded = ("--embedded", str(self.archive))
        result = CliRunner().invoke(cli, ["tier", *job.split(), *embedded, *flags])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def report(self, job: str, *flags: str) -> dict[str, Any]:
        """Return the report of a job that had to come to its end."""
        result = self.run(job, *flags, "--output", "json")
        assert result.exit_code in (0, 1), (job, result.stderr, result.stdout[-500:])
        document: dict[str, Any] = json.loads(result.stdout)
        return document

    def all_reports(self) -> dict[str, dict[str, Any]]:
        store, folder = ("--store", str(self.store), "--no-spark"), self.folder
        events, plan = str(folder / "events.jsonl"), str(folder / "plan.json")
        return {
            "audit": self.report("audit", *store, "--min-age", "1h"),
            "verify": self.report("verify", *store),
            "verify --deep": self.report("verify", *store, "--deep"),
            "rebuild": self.report("rebuild", *store, "--save", events),
            "expire": self.report("expire", *store, "--retention-ms", "365d", "--old-epochs"),
            "export": self.report("export", "--save", plan),
            "backup": self.report("backup export", str(folder / "backup.jsonl")),
            "expire --apply": self.report(
                "expire", *store, "--apply", "--retention-ms", "1d", "--end-open-copies"
            ),
        }


def said_impossible(report: dict[str, Any]) -> int:
    """Return how many segments of impossible partitions a report names."""
    return sum(
        one["fields"]["segments"]
        for one in report["findings"]
        if one["code"] == "TIER-KEY-IMPOSSIBLE"
    )


def impossible_segments(events: Iterable[Event]) -> int:
    """Return how many segments of partitions that no broker can have *events* leave behind."""
    shard = ChosenShard(0)
    for event in events:
        shard.apply_event(event)
    odd = (one for one in shard.partitions() if not is_possible(one))
    return sum(sum(shard.segment_counts_of(one)) for one in odd)


@settings(max_examples=12)
@example([[started(segment_id(1, tp(name)), 0, 9)] for name in ODD_NAMES])
@example([[started(segment_id(1, tp("orders", -1)), 0, 9, size_bytes=-1)]])
@given(st.lists(lives(), max_size=4))
def test_jobs_of_a_tier_when_the_log_holds_any_event_then_end_with_a_report(
    histories: list[list[Event]],
) -> None:
    """No event in the log ends a job of the tier, and each goes on with all others."""
    with tempfile.TemporaryDirectory() as folder:
        events = [event for one in histories for event in one]
        tier = LogOfAnything(Path(folder), events)
        expected = impossible_segments(events)
        for job, report in tier.all_reports().items():
            assert job == "backup" or said_impossible(report) == expected, job
        left = [one for one in tier.store.rglob("*.log") if "rlmm-jobs" not in one.parts]
        assert left == []
