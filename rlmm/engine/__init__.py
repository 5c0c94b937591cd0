"""
The engine of one cluster, made of a log, the pump, the gate and snapshots; and the engines of one
process.

May be imported by `rlmm.http`, `rlmm.library`, `rlmm.process`, `rlmm.sidecar`.

- `all_engines`: Flushes and closes all engines of a process at a time.
- `broker_watch`: Keeps an assignment equal to one broker's (`assignment = cluster:N`).
- `copy_watch`: Warns of tiered topics whose brokers were told to stop copying.
- `engine`: The engine of one cluster: connects its parts.
- `freshness`: Waits until an answer is as fresh as a question demands.
- `log_opening`: Opens the log of an engine, and stands in for one that takes long.
- `part_group`: Runs the parts of a process; the first failure ends them all.
- `plan`: The plan of an engine, and the ways to open a log.
- `service`: The engines of one process; adds and removes them while it runs.
- `snapshot_wiring`: Connects the pump's states with the snapshots of the topic it follows.
- `statistics`: Statistics and readiness of an engine as a whole.
"""
