"""
The gate: every question passes it, and only what is known to be current is answered.

`state` decides per metadata partition whether it is open, `admission` who may ask, `reads` answers,
`barrier` lets readers wait. It knows nothing of how the log is read.

May be imported by `rlmm.config`, `rlmm.engine`, `rlmm.http`, `rlmm.library`, `rlmm.metrics`,
`rlmm.sidecar`, `rlmm.state_sources`, `rlmm.views`.

- `listings`: Long listings, made on the event loop so that everybody else has a turn in between.
- `offset_waits`: Waiting until a metadata partition is read up to an offset, without polling.
- `settings`: What can be chosen about answering, and why each default is what it is.
- `statistics`: What the gate has let in and refused, and who waits, in figures.
"""
