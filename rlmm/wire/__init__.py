"""
The frame protocol of `docs/wire-protocol.md`: bytes to requests and answers, and back.

Invariant: any bytes give a checked value, `ProtocolError` where they are no message, or
`InvalidArgument` where a message is malformed.

May be imported by `broker_adapter`, `rlmm.http`, `rlmm.sidecar`, `rlmm.state_sources`,
`spark_tiering.tier_metadata`.

- `errors`: Errors to codes and fields, and back to their classes.
- `framing`: A stream of bytes to frames.
- `hello`: The first request of a connection and its answer.
- `messages`: Requests and answers in msgpack, with limits on what the service builds.
- `methods`: The table of methods: arguments, options, roles.
- `operator_queries`: Values of the methods for operators.
- `options`: Options of reads, writes and waits.
- `queries`: Values of look-ups and pages.
- `rows`: Rows of the pure-Python engine to bytes, without objects in between.
- `value_checks`: Checks of single values, and the texts of refusals.
- `values`: Partitions, segments, events and answers to writes.
"""
