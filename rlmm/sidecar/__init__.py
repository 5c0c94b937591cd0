"""
The frame server: brokers ask and write over a Unix socket or TCP, in the frames of `rlmm.wire`.

What a frame says is read in `rlmm.wire`, what is true is known by the engine; here is only who may
ask what, in which order answers are made, and how much one client may take of what belongs to all.
Invariant: a read is dispatched in the turn of the event loop in which it is admitted, so that its
answer is as true as the engine's.
"""
