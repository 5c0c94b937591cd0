"""
The offsets where logs begin and end, as the leaders of partitions know them.

May be imported by `rlmm.log.kafka`, `rlmm.process`, `rlmm.state_sources`,
`spark_tiering.segment_sources`.

- `epoch_end`: The end of one leader epoch of a partition, asked of its leader.
- `log_bounds`: The bounds of partitions, asked of each leader at the moment of the call.
- `log_ends`: The offsets that a leader knows of a partition; last stable ones for a service.
"""
