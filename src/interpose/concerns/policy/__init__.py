"""The policy around a tool call.

Knows: the port `Policy` and how its verdict becomes a result. Does not know: how a policy is made, what a rule is.
"""
