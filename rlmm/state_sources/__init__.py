"""
Sources of the tiered state: a running service, Kafka itself, or copied folders.

By module, bottom up:

    protocol         what every source gives: a log to read, the state now, how it stands
    sidecar_*     a running service: how it is reached, the connection, its log, its state in pieces
    sidecar_source   a running service, by the frame protocol
    snapshot_cache   states that are kept from one command to the next, as snapshots
    replayed_states  states that are read for one command, and how each metadata partition stands
    brokers          the cluster's own facts: topics, settings, offsets, disks, rights
    kafka_source     the metadata topic of a cluster, replayed for one answer
    copied_folders   copied folders: which there are, and whose they are
    partition_count  how many partitions a topic has, by where its records lie
    folders_log      the records of copied folders as one log, read-only
    folders_source   copied folders of the metadata topic, replayed for one answer
    replay_bar       how far a replay is, for people
    opening          from what a command line says to the source that is meant

Invariants:

- Nothing here writes to a log, a topic or a folder that was copied.
- Never a partial answer shown as whole: a source that is not caught up raises `NotReady`.
- All three give the same `Moment`, so every question has the same answer.

May be imported by `rlmm.cli`, `spark_tiering.data_source`, `spark_tiering.maintenance`.

- `settings`: The settings of a source, as plain values.
- `sidecar_access`: Access to a running service, from the command line.
- `sidecar_calls`: Calls of a running service beside those of brokers.
- `sidecar_link`: The connection of one command to a running service.
- `sidecar_log`: The log of a running service, read through it.
- `sidecar_moment`: The state of a running service, piece by piece.
- `sidecar_status`: The status of a running service, in the words of every source.
"""
