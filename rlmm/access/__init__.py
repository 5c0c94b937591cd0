"""
Who is asking, and what they may: roles, tokens, client names of certificates, TLS, limits.

What is asked is not known here, nor how it comes in. Invariant: whoever cannot be told for who they
are may nothing, and no text that leaves this package holds a token.

May be imported by `rlmm.cli`, `rlmm.config`, `rlmm.http`, `rlmm.sidecar`,
`spark_tiering.segment_reading`.

- `authentication`: The door of the process.
- `certificates`: What a certificate says.
- `handshakes`: TLS handshakes of one listener.
- `limits`: How much one client may take.
- `local_token`: A token that the service makes for itself.
- `peer_credentials`: Who stands at the other end of a TCP connection, as far as the connection
  itself shows it.
- `roles`: Who somebody is and what that lets them do.
- `settings`: What can be chosen about who may use the service, and why each default is what it
  is.
- `tls`: How connections by TCP are encrypted.
- `tokens`: Tokens and whose they are.
- `watched_files`: Files that are read again when they change.
"""
