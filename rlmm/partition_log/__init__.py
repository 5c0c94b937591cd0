"""
A log of record batches on disk in Kafka's own form, one folder for each partition.

Record sets go in and come out as bytes, unchanged but for the 16 that a broker sets (base offset,
leader epoch).

    async with await LogRegistry.open(root, LogSettings(sync=SyncPolicy.EACH_GROUP)) as logs:
        log = await logs.create("events", 0, topic_id)
        appended = await log.append(record_set, timeout_s=5.0)
        record_set = await log.read(appended.base_offset)

Callers use `registry.LogRegistry`, `partition.PartitionLog` and `settings`; the pure forms of
Kafka's files (`names`, `checkpoints`, `epochs`, `index`) serve every reader of a broker's folder.
Every module, bottom up:

    names             how folders and files are called
    settings          sizes, ages, when to sync
    checkpoints       the small text files, both ways
    epochs            which leader epoch wrote which offsets
    index             the two indexes of a segment
    scan              walking the batches of a file, by heads or with every CRC
    incoming          the record set of an append: checked, and placed at its offsets
    retention         which segments may be deleted
    recovery_rules    what a recovery cuts, rebuilds or refuses
    disk              the calls of the operating system; faults are put in here
    descriptors       a bounded number of open files
    shared_resources  the shared part of all partitions, and the threads
    segment           a `.log` file with its indexes, and how a place in it is found
    recovery          finding out where a log ends, and making its files say so
    store             the segments of a partition: written and synced bytes
    observation       what another process has written into a folder that is only read
    opening           one partition's folder: identity, segments, recovery
    reading           whole batches from an offset on, and the offset of a time
    log_lock          turns of changing a log: one task at a time
    group_commit      group commit: appends that wait together share one sync
    readable          reads, look-ups by time, waits for the end
    partition         the one handle of a partition
    root              the folder above: lock, check points, the mark of a clean end
    registry          all partitions of a folder, each opened once

Invariants:

- One owner: a lock on the folder above the partitions, and one handle for each partition.
- Offsets are given in the order of writing, without a gap. An append is seen whole or not at all.
- *next_offset* is the high watermark: the end of the acknowledged records. With `EACH_GROUP` those
  are synced, otherwise written in full.
- A sync acknowledges only bytes below the log's end before it began. After a failed sync, or a
  failed write that could not be cut back, an unacknowledged append is `AppendUncertain` and the
  partition is offline: later calls raise `LogDamaged` with the fault until it is reopened.
- Recovery cuts only behind the recovery point. Damage below it puts the partition offline and
  changes nothing. Indexes and leader epochs are derived: they are rebuilt and written back.
- A folder opened read-only is not changed in any way, not even by a lock.
- Syncs, rolls, recovery and reads of bytes not in memory run in threads, never on the loop.
- Producer state and transaction indexes are not kept; existing ones are left alone.

May be imported by every package above it in the layers of `pyproject.toml`.
"""
