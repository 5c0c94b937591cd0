"""
What the commands of `rlmm tier` share: flags, progress, signals.

May be imported by `rlmm.cli.queries`, `rlmm.cli.tier`, `rlmm.cli.tier_maintenance`.

- `examples`: What `--help` of `rlmm tier` ends with.
- `job_context`: What surrounds every job of `rlmm tier`.
- `object_check`: The objects of one segment, looked at in their store.
- `options`: The flags of `rlmm tier`.
- `progress_line`: How far a job is, while it runs.
"""
