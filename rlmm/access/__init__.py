"""
Clients and their rights: roles, tokens, client names of certificates, TLS, limits.

Invariant: an unidentified client has no rights, and no text of this package holds a token.

May be imported by `rlmm.cli`, `rlmm.config`, `rlmm.http`, `rlmm.sidecar`,
`spark_tiering.segment_reading`.

- `authentication`: The authentication of clients.
- `certificates`: The names in a certificate.
- `handshakes`: TLS handshakes of one listener.
- `limits`: Limits of one client.
- `local_token`: A token that the service makes for itself.
- `peer_credentials`: The peer of a TCP connection, as far as the connection itself shows it.
- `roles`: Clients, their roles and the rights of each role.
- `settings`: Settings of access, and why each default is what it is.
- `tls`: TLS of TCP connections.
- `tokens`: Tokens and their clients.
- `watched_files`: Files that are read again when they change.
"""
