"""
Where the tiered state is looked at: a running service, Kafka itself, or copied folders.

By module, bottom up:

    protocol      what every source gives: a log to read, the state now, how it stands
    sidecar_*     a running service: how it is reached, the connection, its log, its state in pieces
    sidecar       a running service, by the frame protocol
    cache         states that are kept from one command to the next, as snapshots
    replayed      states that are read for one command, and how each metadata partition stands
    brokers       the cluster's own facts: topics, settings, offsets, disks, rights
    kafka         the metadata topic of a cluster, replayed for one answer
    copies        copied folders: which there are, and whose they are
    counting      how many partitions a topic has, by where its records lie
    folders_log   the records of copied folders as one log, read-only
    folders       copied folders of the metadata topic, replayed for one answer
    progress      how far a replay is, for people
    opening       from what a command line says to the source that is meant

Invariants:

- Nothing here writes to a log, a topic or a folder that was copied.
- Never a partial answer shown as whole: a source that is not caught up raises `NotReady`.
- All three give the same `Moment`, so every question has the same answer.
"""
