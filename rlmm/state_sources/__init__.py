"""
Sources of the tiered state: a running service, Kafka itself, or copied folders.

Invariants:

- Nothing here writes to a log, a topic or a folder that was copied.
- Never a partial answer shown as whole: a source that is not caught up raises `NotReady`.
- All three give the same `Moment`, so every question has the same answer.

May be imported by `rlmm.cli`, `spark_tiering.data_source`, `spark_tiering.maintenance`.

- `brokers`: The cluster's own facts: topics, settings, offsets, disks, rights.
- `copied_folders`: Copied folders: which there are, and of which cluster.
- `folders_log`: The records of copied folders as one log, read-only.
- `folders_source`: Copied folders of the metadata topic, replayed for one answer.
- `kafka_source`: The metadata topic of a cluster, replayed for one answer.
- `opening`: The opening of the source that a command line names.
- `protocol`: What every source gives: a log to read, the state now, its status.
- `replay_bar`: The progress of a replay, for people.
- `replayed_states`: States that are read for one command, and their status.
- `settings`: The settings of a source, as plain values.
- `sidecar_link`: The connection of one command to a running service.
- `sidecar_log`: The log of a running service, read through it.
- `sidecar_moment`: The state of a running service, piece by piece.
- `sidecar_source`: A running service, by the frame protocol.
- `sidecar_status`: The status of a running service, in the words of every source.
- `snapshot_cache`: Snapshots that are kept from one command to the next.
"""
