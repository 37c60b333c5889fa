"""What agents call their tools: wire name to canonical name, and the hook form of the arguments, both ways.

Knows: tool names and argument shapes of each agent.
Does not know: policy, what a command or a path means, any I/O.
"""
