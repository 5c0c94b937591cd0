"""
Where segments come from: folders that this process sees, or the sidecars of broker hosts; and what
only the cluster can tell of them.

    with TierCluster("broker:9092", "client.properties") as cluster:
        facts = cluster.partition_facts(wants_topic)
    source = open_source(LogDirSettings(("/var/kafka-logs",)))
    surveyed, unusable = survey(source, facts, wants_topic)

By module, bottom up:

    protocol           what a source gives: partitions by their identity, files to read them by
    settings           what a source is opened by: plain values
    logdir             brokers' log folders, or copies of them
    sidecar            folders that a broker host's sidecar serves
    opening            from settings to their source
    replica_agreement  how far a replica's log is the leader's
    survey             from a source and the cluster's facts to what a plan is made from
    client_settings    how a client gets into the cluster
    cluster            the cluster, for who may wait: facts, offsets, settings of topics

Invariants:

- A partition is known by its topic's id: a folder that lacks it is of use only where the cluster
  tells which topic has the name, and one whose id is not the cluster's is of none.
- What is not known is not guessed: no last stable offset, no copy.
- What only one replica has is never taken for the partition's.
- Kafka's own topics, the metadata topic among them, are nobody's to tier.
- Nothing here writes, but for the settings of a topic that somebody has changed on purpose.

May be imported by `rlmm.cli`, `spark_tiering.copy_job`, `spark_tiering.data_source`.

- `sidecar_http`: Requests to a sidecar by HTTP, for driver and executors.
"""
