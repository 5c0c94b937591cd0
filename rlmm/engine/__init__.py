"""
The engine of one cluster, made of a log, the pump, the gate and snapshots; and the engines of one
process.

May be imported by `rlmm.http`, `rlmm.library`, `rlmm.process`, `rlmm.sidecar`.

- `all_engines`: What is done for all engines of a process at a time.
- `broker_watch`: `assignment = cluster:N`.
- `copy_watch`: Tiered topics whose brokers were told to stop copying, and for how long they have
  not.
- `engine`: One cluster's engine.
- `freshness`: Waiting until an answer is as fresh as it was asked to be, for every way in which
  questions come.
- `log_opening`: The log of an engine is opened, which a disk that hangs may hold up for ever.
- `plan`: What one engine of a process is built from.
- `service`: The engines of one process.
- `snapshot_keeper`: Snapshots of whatever topic an engine follows now.
- `statistics`: How an engine as a whole stands, in figures.
- `task_group`: The parts of a process.
"""
