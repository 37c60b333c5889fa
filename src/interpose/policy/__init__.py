"""The one order: shape, check, ask, act and back. Every mount calls `judge`.

Knows: points, the effect engine, the catalog, how answers fold into one verdict.
Does not know: mounts, transports.
"""
