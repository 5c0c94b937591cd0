"""
A client of Kafka clusters: raw fetches, an idempotent producer, admin requests.

May be imported by `rlmm.cli`, `rlmm.config`, `rlmm.http`, `rlmm.log`, `rlmm.sidecar`,
`spark_tiering.segment_sources`, `spark_tiering.tier_metadata`.

- `admin`: Requests about the topics of users.
- `code_errors`: Errors of ours for Kafka's error codes.
- `connections`: Connections to brokers, the metadata of the cluster, and the tasks that use them.
- `fetch`: Fetches that wait at brokers, and the record sets that they return.
- `offsets`: The offsets where logs begin and end.
- `produce`: The idempotent producer of single partitions.
- `security`: TLS contexts, SASL users and tokens, and key stores of Java clients.
- `settings`: Settings of the `kafka` log.
"""
