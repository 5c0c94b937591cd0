"""
The library for programs: `rlmm.open`, on an event loop and for threads.

May be imported by `rlmm`, `spark_tiering.tier_metadata`.

- `blocking`: The library for threads.
- `remote_log_metadata`: rlmm as a library.
"""
