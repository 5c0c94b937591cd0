"""
The `kafka` log: the metadata topic of a Kafka cluster, read as raw record sets and appended to.

Only this package imports aiokafka's clients, and takes little of them: a connection with its
security (`connection`), and the consumer of the fallback (`getmany`). Requests and answers are our
own (`wire`, `*_api`): every one names the topic by its id where Kafka can, and none ever lets a
broker create a topic unasked.

Foreign exceptions end in `connection`, `getmany` and `security`, Kafka's error codes in `codes`:
beyond them there are only the errors of `rlmm.errors`.

May be imported by `rlmm.engine`, `rlmm.metrics`, `rlmm.state_sources`,
`spark_tiering.maintenance.backup`, `spark_tiering.maintenance.rebuild`,
`spark_tiering.tier_metadata`.

- `kafka_log`: The `kafka` log.
- `metadata_topic`: The metadata topic itself.
- `recreated_topic`: A metadata topic that was there before, and is lost.
"""
