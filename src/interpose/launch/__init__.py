"""Agents started or registered through interpose: how each is pointed, started, recorded and paused.

Knows: agents' settings for a base URL, launch records, child processes, the switch-off.
Does not know: policy.
"""
