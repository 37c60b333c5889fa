"""Our own coded registrations, one file each.

Knows: one danger or habit each, and the hook input it is told by.
Does not know: mounts.
"""
