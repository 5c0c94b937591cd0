"""
The `kafka` log: the metadata topic of a Kafka cluster, read as raw record sets and appended to.

May be imported by `rlmm.engine`, `rlmm.metrics`, `rlmm.state_sources`,
`spark_tiering.maintenance.backup`, `spark_tiering.maintenance.rebuild`,
`spark_tiering.tier_metadata`.

- `kafka_log`: The `kafka` log.
- `metadata_topic`: The metadata topic: its creation, its loss, and its dangerous settings.
"""
