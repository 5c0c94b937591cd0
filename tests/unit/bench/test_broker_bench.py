"""The parts of the broker benchmark that need no broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench.broker_copies import Watched
from bench.broker_ground import used_bytes
from bench.broker_history import SEGMENT_OFFSETS, Written, write_history
from bench.broker_reads import consumed
from rlmm.metadata.ids import TopicIdPartition, Uuid
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.records.batch import Batch, walk
from rlmm.records.record_set import RecordSet
from rlmm.records.records import Record
from rlmm.records.writer import build_batch
from tests.kafka.tiered import METADATA_PARTITIONS
from tests.kafka.tools import METADATA_TOPIC
from tests.support.builders import finished, started
from tests.support.engine.chosen import ChosenShard

if TYPE_CHECKING:
    from pathlib import Path

TOPIC_ID = Uuid(bytes(range(16)))
PARTITIONS = 3
EVENTS = 1_001
EPOCHS = "leader-epoch-checkpoint"


def first_batch(epoch: int) -> bytes:
    return build_batch([Record(0, 0, None, b"x"), Record(1, 0, None, b"y")], 0, leader_epoch=epoch)


@pytest.fixture
def written(tmp_path: Path) -> Written:
    for number in range(METADATA_PARTITIONS):
        folder = tmp_path / f"{METADATA_TOPIC}-{number}"
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(first_batch(number % 3))
        (folder / f"{0:020d}.index").write_bytes(b"stale")
        (folder / EPOCHS).write_text("0\n2\n0 0\n3 2\n")
    for number in range(PARTITIONS):
        folder = tmp_path / f"orders-{number}"
        folder.mkdir()
        (folder / f"{0:020d}.log").write_bytes(b"")
        (folder / f"{0:020d}.timeindex").write_bytes(b"stale")
    return write_history(tmp_path, "orders", TOPIC_ID, PARTITIONS, EVENTS)


def test_history_when_written_then_a_shard_applies_it_all(tmp_path: Path, written: Written) -> None:
    """A shard applies the written history after the existing records without a remark."""
    shards = {}
    applied = live = 0
    for number in range(METADATA_PARTITIONS):
        data = (tmp_path / f"{METADATA_TOPIC}-{number}" / f"{0:020d}.log").read_bytes()
        before, *batches = walk(data)
        assert isinstance(before, Batch)
        for offset, batch in enumerate(batches, before.next_offset):
            assert isinstance(batch, Batch)
            assert (batch.base_offset, batch.record_count) == (offset, 1)
            assert batch.leader_epoch == before.leader_epoch == number % 3
        shards[number] = shard = ChosenShard(number)
        report = shard.apply(RecordSet(number, data))
        assert report.complete
        assert report.tally.rejected == 0
        applied += report.tally.applied
        live += sum(len(shard.segments(partition)) for partition in shard.partitions())
    assert EVENTS <= written.events == applied < EVENTS + 4
    assert live == written.live_segments
    for number, end in enumerate(written.tiered_ends):
        partition = TopicIdPartition(TOPIC_ID, "orders", number)
        place = metadata_partition_for(TOPIC_ID, number, METADATA_PARTITIONS)
        assert shards[place].highest_offset(partition, 0) == end


def test_history_when_written_then_the_logs_are_trimmed(tmp_path: Path, written: Written) -> None:
    """An empty segment behind the tier is left of each, and nothing that described the old one."""
    for number, end in enumerate(written.tiered_ends):
        folder = tmp_path / f"orders-{number}"
        assert (end + 1) % SEGMENT_OFFSETS == 0
        assert sorted(path.name for path in folder.iterdir()) == [
            f"{end + 1:020d}.log", EPOCHS
        ]  # fmt: skip
    # Epochs that began before the history was there would lie within it.
    kept = {path.read_text() for path in tmp_path.glob(f"*/{EPOCHS}")}
    assert kept == {"0\n1\n0 0\n"}
    assert not list(tmp_path.glob("*/*.index"))
    assert not list(tmp_path.glob("*/*.timeindex"))


def test_delays_when_a_segment_was_seen_then_count_from_the_record_that_rolled_it() -> None:
    """Delays count from the record behind a segment, for rolled ones whose start was seen."""
    watched = Watched(first=10, acknowledged=[1.0, 2.0, 3.0])
    watched.see(finished(7), 1.0)
    assert not watched.finished
    assert not watched.copying
    rolled, active = started(1, 8, 11), started(2, 12, 12)
    for segment, begun in ((rolled, 3.5), (active, 9.0)):
        watched.see(segment, begun)
    watched.see(finished(rolled.id), 4.0)
    watched.see(finished(active.id), 9.5)
    watched.tiered = [(9, 0.5), (11, 4.25), (12, 9.75)]
    assert watched.delays() == ([1.0], [1.25])
    assert watched.copying == [0.5, 0.5]


def test_used_bytes_when_jcmd_tells_of_g1_then_what_is_in_use() -> None:
    """The first figure of `jcmd` is the heap's size and does not count."""
    told = (
        "1234:\n garbage-first heap   total 1048576K, used 173512K [0x0000000080000000, ...)\n"
        "  region size 1024K, 7 young (7168K), 4 survivors (4096K)\n"
    )
    assert used_bytes(told) == 173_512 * 1_024
    with pytest.raises(ValueError, match="no figure of G1's heap"):
        used_bytes("def new generation   total 9K, used 1K")


def test_consumed_when_the_tool_tells_its_table_then_the_rate_of_fetching_in_mb() -> None:
    """The rate comes from the table's columns by name, in millions of bytes."""
    told = (
        "a warning, of one kind or the other\n"
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, "
        "rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec\n"
        "2026-11-19 11:00:00:000, 2026-11-19 11:00:04:000, 190.7349, 47.6837, 200000, 50000.0, "
        "3000, 1000, 190.7349, 200000.0\n"
    )
    records, rate = consumed(told)
    assert records == 200_000
    assert rate == pytest.approx(200.0, abs=0.01)
