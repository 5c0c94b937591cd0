"""
Cuts of the `files` log while its service is down: a disk that lost its cache, or an older copy that
another owner wrote to.
"""

from __future__ import annotations

import shutil
import time
from collections import defaultdict
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Final

from rlmm.log.files.log_folder import META_PROPERTIES, TOPIC
from rlmm.metadata.decoding import decode
from rlmm.metadata.encoding import encode
from rlmm.metadata.events import SegmentSnapshot
from rlmm.metadata.partitioner import metadata_partition_for
from rlmm.metadata.verdicts import Undecodable
from rlmm.partition_log.names import LOG, PARTITION_METADATA, RECOVERY_POINTS, segment_file
from rlmm.records.batch import Batch, walk
from rlmm.records.writer import build_batch, records_of
from tests.support.judge.partition import Answer, PartitionContent, outcomes_of, replayed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from random import Random

    from broker_adapter.calls import Event
    from tests.support.judge.lives import PartitionLife

BATCHES_MAX: Final = 12
"""Batches that a cut takes at the most; each has one event."""
DRAWS_MAX: Final = 20 * BATCHES_MAX


def cut(
    log: Path, lives: Iterable[PartitionLife], partition_count: int, random: Random
) -> dict[PartitionLife, PartitionContent]:
    """Cut some metadata partitions of *lives*; return what the log holds of these lives now."""
    (log / RECOVERY_POINTS).unlink(missing_ok=True)  # it would prove that something is lost
    by_place: dict[int, list[PartitionLife]] = defaultdict(list)
    for life in lives:
        of = life.partition
        by_place[metadata_partition_for(of.topic_id, of.partition, partition_count)].append(life)
    contents: dict[PartitionLife, PartitionContent] = {}
    for place, there in by_place.items():
        path = log / f"{TOPIC}-{place}" / segment_file(0, LOG)
        if random.random() < 0.7 and _cut(path, there, random):
            contents.update({life: content_of(path, life) for life in there})
    return contents


@contextmanager
def with_another_partition(log: Path, count: int) -> Iterator[None]:
    """
    Show the log as that of a topic that got a partition: copied again from its brokers, whose files
    note no count. A log that was made with a count is refused for its own note already.
    """
    properties, folder = log / META_PROPERTIES, log / f"{TOPIC}-{count}"
    noted = properties.read_text()
    properties.write_text(noted.replace(f"rlmm.partition.count={count}", ""))
    folder.mkdir()
    shutil.copy(log / f"{TOPIC}-0" / PARTITION_METADATA, folder)
    try:
        yield
    finally:
        shutil.rmtree(folder)
        properties.write_text(noted)


def _cut(path: Path, lives: Sequence[PartitionLife], random: Random) -> bool:
    """Cut the log, and let it grow back: not at all, to where it ended, or beyond."""
    batches = [found for found in walk(path.read_bytes()) if isinstance(found, Batch)]
    if not batches:
        return False
    lost = batches[-random.randint(1, BATCHES_MAX) :]
    begin, lost_count = lost[0], lost[-1].next_offset - lost[0].base_offset
    count = random.choice((0, lost_count, lost_count + random.randint(1, BATCHES_MAX)))
    epoch, now_ms = max(begin.leader_epoch, 0) + random.randrange(2), time.time_ns() // 1_000_000
    with path.open("r+b", buffering=0) as file:
        file.truncate(begin.start)
        contents = {life: content_of(path, life) for life in lives}
        events = islice(_admitted(contents, random), count)
        grown = [
            build_batch(records_of([encode(event)], offset, now_ms), offset, leader_epoch=epoch)
            for offset, event in enumerate(events, begin.base_offset)
        ]
        file.seek(begin.start)
        file.write(b"".join(grown))
    return True


def _admitted(contents: dict[PartitionLife, PartitionContent], random: Random) -> Iterator[Event]:
    """Yield events that a writer may write, each after those before it."""
    for life in random.choices(list(contents), k=DRAWS_MAX):
        event = life.write(random)
        outcome, content = next(outcomes_of(contents[life], event))
        if outcome is not Answer.REJECTED:
            contents[life] = content
            yield life.event_of(event)


def content_of(path: Path, life: PartitionLife) -> PartitionContent:
    """Return what a replay of the log in *path* leaves of the user partition of *life*."""
    content = PartitionContent()
    for batch in walk(path.read_bytes()):
        for _, value in batch.values() if isinstance(batch, Batch) else ():
            if value is not None and bytes(life.partition.topic_id) in value:
                event = decode(value)
                assert not isinstance(event, Undecodable | SegmentSnapshot), event
                content = replayed(content, life.write_of(event))
    return content
