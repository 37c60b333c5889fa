"""Bytes to values and back: server-sent events, JSON read strictly or as it comes.

Knows: framings and encodings. Does not know: sockets, agents, policy.
"""
