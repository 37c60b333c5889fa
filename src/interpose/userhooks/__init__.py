"""hooks.yaml to one owned set of registrations: parse, normalise, merge, register.

Knows: the files, their keys, precedence, what a user hook may do where.
Does not know: mounts, transports, how effects are consumed.
"""
