"""
Kafka's retention: the segments that a leader deletes, and the leader epochs it goes by. Pure.

May be imported by `rlmm.cli`, `rlmm.inspection`, `rlmm.views`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.

- `retention`: Kafka's retention of the segments of a user partition, now and later.
- `segment_lineage`: The lineage of segments, and the leader epochs of a log.
"""
