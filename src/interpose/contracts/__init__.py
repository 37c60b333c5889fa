"""The words every room shares: value types and Protocols, standard library only.

Knows: tools, middleware, hook input, effects, decisions, stages, verdicts, ports, errors.
Does not know: I/O, any third party, any other room.
"""

CONTRACTS_VERSION = 1
"""Raised when a name here changes its meaning; compared where two processes meet."""
