"""
The pump: reads the log into shards, one follower for each metadata partition.

`replay`, `verdict_waits` and `damage_skipping` decide without I/O; tasks stand around them.

May be imported by `rlmm.config`, `rlmm.engine`, `rlmm.inspection`, `rlmm.sidecar`,
`spark_tiering.maintenance`.

- `damage_skipping`: The first offset behind a batch that cannot be trusted.
- `follower`: The task that reads one metadata partition.
- `incidents`: Events that were not simply applied, within bounds.
- `known_state`: The newest known state whose records the log still holds.
- `listener`: Interfaces of what the pump tells: gate, offset waits.
- `log_connection`: Attempts to reach the log, with pauses.
- `memory_budget`: Compares resident memory with the limits, also those of control groups.
- `placement`: Judges user partitions whose events lie in another metadata partition.
- `pump`: Begins and ends followers by the assignment, and asks for log end offsets.
- `replay`: Decides whether a shard has caught up, fell behind or is lost.
- `replay_scheduler`: Gives followers turns on the event loop.
- `settings`: Limits and pauses of reading and writing.
- `slices`: Applies a record set slice by slice, in a thread where that is worth it.
- `state_images`: Copies a state for a snapshot, between turns of the event loop.
- `state_restore`: The interface of the keeper of states: a state from a former run.
- `statistics`: Values that show how reading goes.
- `verdict_waits`: Passes verdicts on to waiting writers.
- `writer`: Validates and appends events, and waits for their verdicts.
"""
