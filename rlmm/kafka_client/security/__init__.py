"""
TLS contexts, SASL users and tokens, and key stores of Java clients.

May be imported by `rlmm.config`, `rlmm.kafka_client.connections`.

- `client_options`: Security settings in the form of the library.
- `key_stores`: Key stores of Java clients, JKS or PKCS12.
- `oauth_tokens`: Tokens of OAUTHBEARER in a file that another program renews.
"""
