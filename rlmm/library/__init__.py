"""
The library for programs: `rlmm.open`, on an event loop and for threads.

May be imported by `rlmm`, `spark_tiering.tier_metadata`.

- `blocking`: The same for threads.
- `metadata_calls`: Every question and every write, on the event loop.
- `remote_log_metadata`: `rlmm.open`: a log followed, its metadata held open and closed.
"""
