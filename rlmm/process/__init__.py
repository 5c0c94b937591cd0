"""
The process of `rlmm serve`: built from a configuration, run under one task group, stopped in order.

May be imported by `rlmm.cli`, `rlmm_demo`.

- `later_imports`: Imports that a start does without, made behind it.
- `run`: Opens the logs, runs the parts, and ends them in order at a signal.
- `snapshot_once`: Reads each log to its end, writes snapshots and ends.
- `systemd`: Notifies systemd of readiness, status and liveness.
- `wiring`: Builds plans and servers from a configuration; opens nothing.
"""
