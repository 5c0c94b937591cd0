"""
The frame protocol between a broker and the service: bytes to requests and answers, and back.

Pure: server and clients both stand on it, and it knows neither. `docs/wire-protocol.md` describes
the same for who writes a client in another language. Invariant: whatever bytes come in, what comes
out is a checked value or one of two errors, `ProtocolError` where the bytes are no message and
`InvalidArgument` where a message says what cannot be meant.
"""
