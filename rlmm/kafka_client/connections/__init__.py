"""
Connections to brokers, the metadata of the cluster, and the tasks that use them.

May be imported by `rlmm.kafka_client.admin`, `rlmm.kafka_client.fetch`,
`rlmm.kafka_client.offsets`, `rlmm.kafka_client.produce`, `rlmm.log.kafka`, `rlmm.state_sources`,
`spark_tiering.segment_sources`.

- `broker_connections`: The connections to one broker.
- `cluster`: What is known of the cluster, and how it is asked anew.
- `connection`: One connection to one broker.
- `diagnosis`: Why a connection could not be made or was lost.
- `pool`: Connections of one kind to one broker.
- `task_set`: The tasks of one log.
"""
