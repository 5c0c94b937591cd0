"""
The frame protocol between a broker and the service: bytes to requests and answers, and back.

Pure: server and clients both stand on it, and it knows neither. `docs/wire-protocol.md` describes
the same for who writes a client in another language. Invariant: whatever bytes come in, what comes
out is a checked value or one of two errors, `ProtocolError` where the bytes are no message and
`InvalidArgument` where a message says what cannot be meant.

May be imported by `broker_adapter`, `rlmm.http`, `rlmm.sidecar`, `rlmm.state_sources`,
`spark_tiering.tier_metadata`.

- `errors`: Errors on the wire.
- `framing`: Frames.
- `hello`: The first request of a connection and its answer.
- `messages`: Messages.
- `methods`: The methods of the protocol, as data.
- `operator_queries`: What operators look at, on the wire.
- `options`: Options.
- `queries`: Questions on the wire.
- `rows`: The short way from a row of the pure engine to the bytes that are sent, without an
  object between.
- `value_checks`: What a single value must look like, and how it is named in a refusal.
- `values`: Values on the wire.
"""
