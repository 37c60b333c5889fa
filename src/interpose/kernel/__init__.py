"""Mechanisms with one job each, which know no noun of the domain.

Knows: clock, ids, canonical form, freezing, isolation, databases.
Does not know: handlers, tools, agents.
"""
