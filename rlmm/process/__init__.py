"""
The process that `rlmm serve` runs: built from a configuration, run under one task group, stopped in
order.

May be imported by `rlmm.cli`, `rlmm_demo`.

- `run`: The process.
- `snapshot_once`: Engines for one purpose.
- `systemd`: systemd's notify protocol.
- `wiring`: From a configuration to what is built from it.
"""
