"""Tokens for tools, and the person's part in getting them.

Knows: how a challenge reaches the model, and how a token is had (environment, OAuth) and kept (keyring, file).
Does not know: which tool needs one. `middleware`, `static` and `files` need nothing; `device` and `browser` need
`interpose[auth]`, and so does `vault`.
"""
