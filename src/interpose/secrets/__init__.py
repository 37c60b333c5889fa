"""Finding and masking secrets.

Knows: the shapes of well-known keys, tokens and passwords.
Does not know: who sends what where.
"""
