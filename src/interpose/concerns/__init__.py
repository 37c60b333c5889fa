"""One small package for each concern around a tool call, each a `ToolMiddleware` and what it needs.

Knows: `contracts`. Does not know: each other, and who has them in a list.
"""
