"""What happened: written once, by many processes, and read back as stories.

Knows: records, how they are stored, found and told.
Does not know: who writes them; it decides nothing.
"""
