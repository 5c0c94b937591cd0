"""
Kafka's requests and responses, as bytes and as values. Pure.

May be imported by `rlmm.kafka_client`, `rlmm.log`, `rlmm.state_sources`, `spark_tiering.adopt`,
`spark_tiering.segment_sources`.

- `brokers`: Requests to one broker about itself.
- `cluster_rights`: What our credentials may do with the cluster, and how brokers say it.
- `error_codes`: Kafka's error codes, and what they mean to a reader or a writer of one partition.
- `fetch`: The request for records.
- `leader_epochs`: The request for where epochs of leaders end.
- `metadata`: Requests about the cluster.
- `produce`: Requests of an idempotent producer.
- `topics`: Requests about topics themselves.
- `wire`: Kafka's wire format.
"""
