"""Composition of middleware around a call, sync and async, and the order of it.

Knows: lists, links, who is outermost, what a `call_next` may do. Does not know: what a tool is, what a policy is.
"""
