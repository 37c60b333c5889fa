"""The tests mirror the rooms; `tests/e2e` starts real processes."""
