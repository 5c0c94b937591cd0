"""
Sources of segments: folders that this process sees, or the sidecars of broker hosts; and facts that
only the cluster has.

    protocol         the protocol of sources: partitions by their identity, with their files
    settings         settings of a source, as plain values
    logdir           brokers' log folders, or copies of them
    sidecar_http     requests to a sidecar by HTTP, for driver and executors
    sidecar          folders that a broker host's sidecar serves
    opening          from settings to their source
    survey           from a source and the cluster's facts to the inputs of a plan
    cluster          the cluster, by blocking calls: facts, offsets, settings of topics

Invariants:
- A partition is known by its topic's id: a folder that lacks it is of use only where the cluster
  tells which topic has the name, and one whose id is not the cluster's is of none.
- The survey guesses nothing: without a last stable offset there is no copy.
- Records of one replica alone are never taken for the partition's.
- Kafka's own topics, the metadata topic among them, are never tiered.
- Nothing here writes, except the settings of a topic that an operator asks to change.

May be imported by `rlmm.cli`, `spark_tiering.copy_job`, `spark_tiering.data_source`.
"""
