"""
Kafka's retention: which segments of a user partition a leader deletes, and by which leader epochs
it decides. Pure.

May be imported by `rlmm.cli`, `rlmm.inspection`, `rlmm.views`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.

- `log_leader_epochs`: The leader epochs of a user partition's log, as its leader keeps them, and
  the segments that fit them.
- `retention`: Kafka's retention of the segments of a user partition, now and later.
- `segment_lineage`: The lineage of a user partition's segments.
"""
