"""Policies at hand: built once, off the loop."""

import asyncio
import threading

import pytest

from interpose.contracts.ports import Policy
from interpose.gateway.policies import Policies
from interpose.testing.fakes import FakePolicy


class Building:
    """The port `Workspaces`, which tells where it was asked, and fails as often as it is told to."""

    def __init__(self, failures: int = 0) -> None:
        self.asked: list[tuple[str | None, threading.Thread]] = []
        self.failures = failures

    def policy(self, root: str | None) -> Policy:
        """A new policy each time."""
        self.asked.append((root, threading.current_thread()))
        if len(self.asked) <= self.failures:
            raise OSError("no such folder")
        return FakePolicy()


def test_each_workspace_is_asked_once_and_never_on_the_loop() -> None:
    """The second request of a workspace finds its policy there."""
    building = Building()

    async def asked() -> None:
        policies = Policies(building)
        assert await policies.of("/a") is await policies.of("/a")
        assert await policies.of(None) is not await policies.of("/a")

    asyncio.run(asked())
    assert [root for root, _ in building.asked] == ["/a", None]
    assert threading.main_thread() not in [thread for _, thread in building.asked]


def test_what_cannot_be_built_is_tried_again() -> None:
    """A failure is not remembered."""

    async def asked() -> None:
        policies = Policies(Building(failures=1))
        with pytest.raises(OSError, match="no such folder"):
            await policies.of("/a")
        assert isinstance(await policies.of("/a"), FakePolicy)

    asyncio.run(asked())
