"""Drivers: tools behind one object, described to a model and run through a middleware list.

Knows: prompts, how a model's reply is read, how drivers nest. Does not know: any concern, any policy.
"""
