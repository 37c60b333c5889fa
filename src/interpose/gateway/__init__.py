"""The mount on the wire: HTTP between an agent and its model, judged by the port `Policy`.

Knows: the APIs' shapes, what of a request is new, how a verdict is rendered into traffic.
Does not know: what a rule is, where its ports come from.
"""
