"""The demonstration: a real gateway, a scripted model, and a small agent with real tools in a temporary folder.

Knows: how to put the other rooms together to show what they do.
Does not know: anything that the product itself needs.
"""
