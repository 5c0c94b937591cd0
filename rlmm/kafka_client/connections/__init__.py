"""
Connections to brokers, the metadata of the cluster, and the tasks that use them.

May be imported by `rlmm.kafka_client.admin`, `rlmm.kafka_client.fetch`,
`rlmm.kafka_client.offsets`, `rlmm.kafka_client.produce`, `rlmm.log.kafka`, `rlmm.state_sources`,
`spark_tiering.segment_sources`.

- `broker_connections`: Connections to one broker, in pools by kind.
- `cluster_view`: The cluster as its brokers describe it, refreshed by one attempt for all callers.
- `connection`: A connection to one broker.
- `diagnosis`: Diagnosis of a failed connection.
- `task_set`: The tasks of one log.
"""
