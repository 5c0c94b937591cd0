"""
The bounds of logs: log start offset, high watermark and last stable offset, as leaders tell
them.

May be imported by `rlmm.log.kafka`, `rlmm.process`, `rlmm.state_sources`,
`spark_tiering.segment_sources`.

- `last_stable_offsets`: Last stable offsets of users' partitions, asked of the cluster for a
  service beside the log.
- `log_bounds`: The bounds of partitions, asked of each partition's leader at the moment of the
  call.
- `log_ends`: The offsets that a leader knows of a partition.
"""
