"""
Kafka's requests and responses, as bytes and as values. Pure: a client and a broker can stand on it.

May be imported by `rlmm.kafka_client`, `rlmm.log`, `rlmm.state_sources`, `spark_tiering.adopt`,
`spark_tiering.segment_sources`.

- `wire`: The primitives of Kafka's wire format, request headers, and API versions.
- `error_codes`: Error codes of responses.
- `cluster`: Metadata and DescribeCluster: brokers, topics, leaders, and our user's rights.
- `offsets`: ListOffsets and OffsetForLeaderEpoch.
- `fetch`: Fetch.
- `produce`: Produce and InitProducerId.
- `configs`: CreateTopics, DescribeConfigs and IncrementalAlterConfigs.
- `log_dirs`: DescribeLogDirs.
"""
