"""
Who is asking, and what they may: roles, tokens, client names of certificates, TLS, limits.

What is asked is not known here, nor how it comes in. Invariant: whoever cannot be told for who they
are may nothing, and no text that leaves this package holds a token.
"""
