"""
Kafka's requests and responses, as bytes and as values. Pure: a client and a broker can stand on it.

May be imported by `rlmm.kafka_client`, `rlmm.log`, `rlmm.state_sources`, `spark_tiering.adopt`,
`spark_tiering.segment_sources`.

- `cluster`: Metadata and DescribeCluster: brokers, topics, leaders, and our user's rights.
- `configs`: CreateTopics, DescribeConfigs and IncrementalAlterConfigs.
- `error_codes`: Error codes of responses.
- `fetch`: Fetch.
- `log_dirs`: DescribeLogDirs.
- `offsets`: ListOffsets and OffsetForLeaderEpoch.
- `produce`: Produce and InitProducerId.
- `wire`: The primitives of Kafka's wire format, request headers, and API versions.
"""
