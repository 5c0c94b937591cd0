"""
The gate: every question passes it, and it admits only what is known to be current.

The gate does not know how the log is read; the pump reports to it.

May be imported by `rlmm.config`, `rlmm.engine`, `rlmm.http`, `rlmm.library`, `rlmm.metrics`,
`rlmm.sidecar`, `rlmm.state_sources`, `rlmm.views`.

- `admission`: Admits questions by assignment and by the state of each metadata partition.
- `frame_lookups`: Hands admission to the native core, for look-ups by frame, and takes it back.
- `listings`: Long listings, made in pieces between turns of the event loop.
- `offset_waits`: Readers that wait for an offset, without polling.
- `reads`: The questions, in the terms of Kafka's `RemoteLogMetadataManager`.
- `settings`: Hints and limits for readers.
- `state`: The state machine of one metadata partition's gate.
- `statistics`: Counters of answers, refusals and waits.
"""
