"""The effect engine: which registrations match an input, what they emit in order, and what that comes to.

Knows: hooks, effects, rules, the registration table, evaluation, budgets, snapshots.
Does not know: what a tool does, sessions, transports, storage, or what anybody makes of an effect.
"""
