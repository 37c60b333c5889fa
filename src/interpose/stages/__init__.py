"""Shape: handlers that may look at a point, cancel it or change it, one after the other, each with the last patch.

Knows: which handlers match a point, their order by links, their limits and failures, what a patch may change.
Does not know: who asked, what the check phase says, what a mount does with the outcome.
"""
