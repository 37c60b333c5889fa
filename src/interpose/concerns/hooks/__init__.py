"""Observers around a tool call.

Knows: who wants to be told before a call, after it, and when it fails. Does not know: how to prevent or change one.
"""
