"""The policies that requests are judged by, at hand once they are built.

Knows: that building one reads files, which a loop must not wait for. Does not know: what a policy is made of.
"""

import asyncio

from interpose.contracts.ports import Policy, Workspaces


class Policies:
    """The policy of each workspace that was asked for. Belongs to one event loop."""

    def __init__(self, workspaces: Workspaces) -> None:
        self._workspaces = workspaces
        self._built: dict[str | None, Policy] = {}

    async def of(self, root: str | None) -> Policy:
        """The policy of the workspace at `root`; in a worker thread the first time. Raises what building it raises."""
        built = self._built.get(root)
        if built is None:
            built = self._built[root] = await asyncio.to_thread(self._workspaces.policy, root)
        return built
