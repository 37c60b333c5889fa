"""Tokens for tools, and the person's part in getting them.

Knows: how a challenge reaches the model, and how a token is had (environment, OAuth) and kept (keyring, file).
Does not know: which tool needs one. `middleware`, `static` and `stores` need nothing; `device`, `browser` and
`keyrings` need `interpose[auth]`.
"""
