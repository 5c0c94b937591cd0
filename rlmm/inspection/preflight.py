"""
The preflight of a partition's move or a topic's deletion: how both depend on the tier. Pure. A
replica that begins empty copies the leader's local part, and needs epochs and producers from the
segment that ends right before it: without that segment it never comes up. A deleted topic takes its
tier with it; its open copies and deletions stay behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.findings.finding import Finding, error, note, of_partition, warning
from rlmm.inspection.explain_findings import STOCK_LOOKUP_EMPTY
from rlmm.metadata.segment import SegmentState
from rlmm.retention.segment_lineage import covered_by, finished_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from rlmm.inspection.cluster_facts import PartitionOffsets
    from rlmm.metadata.ids import TopicIdPartition
    from rlmm.metadata.segment import SegmentMetadata

NO_STATE_BEFORE_LOCAL = error(
    "NO-STATE-BEFORE-LOCAL",
    "no finished segment holds the offset before the leader's local start",
    "a replica that begins empty needs its leader epochs and producers from there, and would try "
    "again for ever (KAFKA-16105, KAFKA-19523)",
    "see `rlmm explain` for that offset; have the range copied, or move the log start to the local "
    "start with `kafka-delete-records` if the data may go",
)
LOCAL_START_UNKNOWN = warning(
    "LOCAL-START-UNKNOWN",
    "where the leader's local log begins is not known",
    "whether a new replica comes up cannot be said beforehand",
    "ask again when the partition has a leader, with rights to DESCRIBE the topic",
)
COPY_UNDER_WAY = note(
    "COPY-UNDER-WAY",
    "copies are open",
    "when the leadership moves they are given up and made again; their objects stay behind",
    "wait until they are finished, see `rlmm stuck`",
)
BEHIND_BEFORE_MOVE = note(
    "COPIES-BEHIND",
    "not all that is stable is copied",
    "what only local disks have is copied by the replicas the usual way, which takes its time",
    "nothing to do; the move is faster once copies have caught up, see `rlmm lag`",
)
TARGET_WITHOUT_TIER = error(
    "TARGET-WITHOUT-TIER",
    "a broker that is to get a replica does not tier",
    "as a leader it would neither copy nor read what is tiered",
    "set `remote.log.storage.system.enable=true` on it first",
)
DATA_ONLY_REMOTE = warning(
    "DATA-ONLY-REMOTE",
    "data that only the tier has goes with the topic",
    "there is no copy of it on any broker",
    "export what is still needed first",
)
LEFTOVERS_LIKELY = warning(
    "LEFTOVERS-LIKELY",
    "something is open that a deletion leaves behind",
    "objects of copies that were never finished are not deleted by brokers of every version",
    "wait until nothing is open (`rlmm stuck`), and look there again after the deletion",
)
NOT_TIERED = note(
    "NOT-TIERED",
    "the topic has no segments in the tier",
    "nothing of it depends on the tier",
    "nothing to do",
)
KINDS = (
    NO_STATE_BEFORE_LOCAL, LOCAL_START_UNKNOWN, COPY_UNDER_WAY, BEHIND_BEFORE_MOVE,
    TARGET_WITHOUT_TIER, DATA_ONLY_REMOTE, LEFTOVERS_LIKELY, NOT_TIERED,
)  # fmt: skip


def before_reassignment(
    partition: TopicIdPartition,
    segments: Sequence[SegmentMetadata],
    offsets: PartitionOffsets | None,
    leader_epoch: int | None,
    is_found: Callable[[int, int], bool] | None = None,
) -> list[Finding]:
    """Report what keeps a new replica from starting; *is_found* answers as a stock broker."""
    if not segments:
        return [of_partition(NOT_TIERED, partition, "no segments")]
    local, start = (None, None) if offsets is None else (offsets.earliest_local, offsets.earliest)
    if local is None or start is None:
        return [of_partition(LOCAL_START_UNKNOWN, partition, "no leader told it"),
                *_open(partition, segments)]  # fmt: skip
    found = list(_open(partition, segments))
    epochs = _epochs_with(segments, local - 1, leader_epoch)
    if local > start and not epochs:
        found.append(
            of_partition(
                NO_STATE_BEFORE_LOCAL, partition,
                f"the local log begins at {local}, no finished segment holds {local - 1}",
                local_start=local,
            )
        )  # fmt: skip
    elif local > start and is_found and not any(is_found(epoch, local - 1) for epoch in epochs):
        found.append(
            of_partition(
                STOCK_LOOKUP_EMPTY, partition,
                f"the local log begins at {local}, and a new replica that looks {local - 1} up "
                "gets no segment",
                local_start=local,
            )
        )  # fmt: skip
    last = max((one.last_offset for one in finished_of(segments)), default=start - 1)
    stable = None if offsets is None else offsets.last_stable
    if stable is not None and stable - 1 > last:
        found.append(
            of_partition(BEHIND_BEFORE_MOVE, partition, f"{stable - 1 - last} offsets",
                     offsets=stable - 1 - last)
        )  # fmt: skip
    return found


def targets_without_tier(
    enabled: dict[int, bool | None], targets: Collection[int]
) -> list[Finding]:
    """Report the brokers of *targets* that are known not to tier."""
    return [
        Finding(TARGET_WITHOUT_TIER, f"broker {broker}", "remote.log.storage.system.enable=false",
                fields={"broker": broker})
        for broker in sorted(targets)
        if enabled.get(broker) is False
    ]  # fmt: skip


def before_deletion(
    topic: str,
    parts: Sequence[tuple[Sequence[SegmentMetadata], PartitionOffsets | None]],
) -> list[Finding]:
    """Report the parts of the tier that a deletion of *topic* deletes, or leaves behind."""
    segments = [one for those, _ in parts for one in those]
    if not segments:
        return [Finding(NOT_TIERED, topic, "no segments", fields={"topic": topic})]
    found = []
    only, size = 0, 0
    for those, offsets in parts:
        local = None if offsets is None else offsets.earliest_local
        remote = [one for one in finished_of(those) if local is None or one.last_offset < local]
        only, size = only + len(remote), size + sum(one.size_bytes for one in remote)
    if only:
        found.append(
            Finding(
                DATA_ONLY_REMOTE, topic, f"{only} segments, {size} bytes",
                fields={"topic": topic, "segments": only, "size_bytes": size},
            )
        )  # fmt: skip
    open_ones = [one for one in segments if one.state is not SegmentState.COPY_SEGMENT_FINISHED]
    if open_ones:
        found.append(
            Finding(
                LEFTOVERS_LIKELY, topic,
                f"{len(open_ones)} copies or deletions are open",
                fields={"topic": topic, "segments": len(open_ones)},
            )
        )  # fmt: skip
    return found


def _epochs_with(
    segments: Sequence[SegmentMetadata], offset: int, leader_epoch: int | None
) -> set[int]:
    """Return the epochs that the leader may have in which a finished segment holds *offset*."""
    return {
        stretch.epoch
        for one in finished_of(segments)
        for stretch in covered_by(one)
        if stretch.first <= offset <= stretch.last
        and (leader_epoch is None or stretch.epoch <= leader_epoch)
    }


def _open(partition: TopicIdPartition, segments: Sequence[SegmentMetadata]) -> list[Finding]:
    copies = [one for one in segments if one.state is SegmentState.COPY_SEGMENT_STARTED]
    if not copies:
        return []
    return [of_partition(COPY_UNDER_WAY, partition, f"{len(copies)} copies", copies=len(copies))]
