"""What tests of interpose, and of what stands on it, are written with.

Knows: fakes for the ports, and a real HTTP server that stands in for a paid model.
Does not know: how the rooms under test work inside.
"""
