"""
TLS contexts, SASL users and tokens, and key stores of Java clients.

May be imported by `rlmm.config`, `rlmm.kafka_client.connections`.

- `java_key_store`: Java's own key stores, JKS.
- `key_stores`: Key stores as Java's clients have them.
- `oauth_tokens`: Tokens of OAUTHBEARER that somebody else keeps fresh in a file.
- `security`: Security as the connections take it.
"""
