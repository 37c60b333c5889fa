"""A person's consent to a tool call.

Knows: what counts as a yes, and how to ask for one. Does not know: policies, which calls are dangerous.
"""
