"""
The parts that the commands of `rlmm tier` share.

May be imported by `rlmm.cli.queries`, `rlmm.cli.tier`, `rlmm.cli.tier_maintenance`.

- `examples`: Examples for `--help`.
- `job_context`: Signals, log lines and reports of a job.
- `object_check`: The objects of one segment, checked in their store.
- `object_store`: The flags of a store, and the store that they name.
- `options`: The flags of sources, metadata, topics and engines.
- `progress_line`: The progress of a job on standard error.
"""
