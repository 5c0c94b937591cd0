"""
A log of record batches on disk in Kafka's own form, one folder for each partition.

The log does not interpret records: record sets go in and come out as bytes, unchanged but for the
16 bytes that a broker sets (base offset, and leader epoch; the length keeps its value).

    settings = LogSettings(sync=SyncPolicy.EACH_GROUP)
    async with await LogRegistry.open(root, settings) as logs:
        log = await logs.create("events", 0, topic_id)
        appended = await log.append(record_set, timeout_s=5.0)
        record_set = await log.read(appended.base_offset)

The interface for callers:

`registry.LogRegistry`: all partitions below one folder, each opened once
    open(root, settings, read_only=False)   takes the folder's lock, or raises `ConfigError`
    topic_partitions()                      which partitions have a folder
    partition(topic, number)                the one handle of a partition; opens it, and recovers it
    create(topic, number, topic_id)         the same, and makes the folder when there is none
    reopen(topic, number)                   recovers a partition that is offline
    tick(), run()                           roll by age, retention, check points; `run` does it
                                            periodically until it is cancelled
    checkpoint(), statistics(), close()     close syncs everything and marks the end as a clean one

`partition.PartitionLog`: one partition
    topic, number, topic_id                 the id as 16 bytes, None when the folder names none
    log_start, next_offset                  readers see [log_start, next_offset)
    append(record_set, leader_epoch=, verify_crc=, timeout_s=) -> Appended(base_offset, next_offset)
    read(position, bytes_max=) -> RecordSet | None
    wait_past(position, timeout_s) -> bool  until next_offset > position; by notification
    offset_for_time(timestamp_ms) -> OffsetAtTime | None
    leader_epochs, fault, recovered, statistics()
    sync(), roll(), roll_when_aged(now_ms), delete_expired(now_ms), advance_log_start(offset)

`settings.LogSettings`, `settings.SyncPolicy`: sizes, ages, when to sync, what to keep

The forms of Kafka's files serve every reader of a broker's folder: `names`, `checkpoints`,
`epochs` and `index` are pure.

Every module, bottom up; modules not named so far are internal:

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
    place             the shared part of all partitions
    segment           a `.log` file with its indexes, and how a place in it is found
    recovery          finding out where a log ends, and making its files say so
    store             the segments of a partition: written and synced bytes
    opening           one partition's folder: identity, segments, recovery
    reading           whole batches from an offset on, and the offset of a time
    workers           the threads
    turns             turns of changing a log: one task at a time
    commit            group commit: appends that wait together share one sync
    readable          reads, look-ups by time, waits for the end
    partition         the one handle of a partition
    root              the folder above: lock, check points, the mark of a clean end
    registry          all partitions of a folder, each opened once

Invariants:

- One owner: a lock on the folder above the partitions, and one handle for each partition.
- Offsets are given in the order of writing, without a gap. An append is seen whole or not at all.
- *next_offset* is the high watermark: the end of the acknowledged records. With `EACH_GROUP` those
  are synced, otherwise written in full.
- A sync acknowledges only what lay below the log's end before the sync began. After a failed sync,
  or a failed write that could not be cut back, an unacknowledged append is `AppendUncertain`
  and the partition is offline: every later call raises `LogDamaged` with the fault until it is
  reopened.
- Recovery cuts only what lies behind the recovery point. Damage below it puts the partition offline
  and changes nothing. Indexes and leader epochs are derived: they are rebuilt and written back.
- A folder opened read-only is not changed in any way, not even by a lock.
- No call blocks the event loop for long: syncs, rolls, recovery and reads of what is not in memory
  run in threads.

Not kept: producer state and transaction indexes; those that are there are left alone.

May be imported by every package above it in the layers of `pyproject.toml`.
"""
