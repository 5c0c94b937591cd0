"""
Requests about the topics of users: settings, offsets, changes of settings.

May be imported by `rlmm.kafka_client.offsets`, `rlmm.log.kafka`, `rlmm.state_sources`,
`spark_tiering.segment_sources`.

- `tiered_topics`: Which user partitions of tiered topics a broker leads or follows, by the
  cluster's own metadata.
- `user_topics`: A cluster asked about any of its topics.
"""
