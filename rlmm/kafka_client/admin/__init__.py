"""
Requests about the topics of users: settings, offsets, changes of settings.

May be imported by `rlmm.kafka_client.offsets`, `rlmm.log.kafka`, `rlmm.state_sources`,
`spark_tiering.segment_sources`.

- `tiered_topics`: Partitions of tiered topics on a broker, and topics that it must not copy.
- `user_topics`: User topics of a cluster, for jobs that run beside the brokers.
"""
