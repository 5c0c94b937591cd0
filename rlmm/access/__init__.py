"""
Clients and their rights: roles, tokens, client names of certificates, TLS, limits.

Invariant: an unidentified client has no rights, and no text of this package holds a token.

May be imported by `rlmm.cli`, `rlmm.config`, `rlmm.http`, `rlmm.sidecar`,
`spark_tiering.segment_reading`.

- `audit`: The audit log of writes, assignments, takeovers and refusals.
- `authentication`: The authentication of clients.
- `handshakes`: TLS handshakes of one listener.
- `limits`: Limits of one client.
- `peer_credentials`: The peer of a TCP connection, as far as the connection itself shows it.
- `roles`: Clients, their roles and the rights of each role.
- `settings`: Settings of access, and why each default is what it is.
- `tls`: TLS of TCP connections, and the names in a certificate.
- `tokens`: Tokens and their clients, and the token that the service makes for itself.
- `watched_files`: Files that are read again when they change.
"""
