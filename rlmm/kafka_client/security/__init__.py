"""
TLS contexts, SASL users and tokens, and key stores of Java clients.

May be imported by `rlmm.config`, `rlmm.kafka_client.connections`.

- `java_key_store`: Java's own key stores, JKS.
- `key_stores`: Key stores of Java clients, in either form.
- `oauth_tokens`: Tokens of OAUTHBEARER in a file that another program renews.
- `security`: Security settings in the form of the library.
"""
