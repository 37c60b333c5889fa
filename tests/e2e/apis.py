"""Each API, asked in each of its ways, for tests that hold for all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from interpose.contracts.stages import Point
from interpose.contracts.verdict import Verdict
from interpose.testing.upstream import Step
from tests.e2e.house import House
from tests.e2e.talkers import APIS, Talker


@dataclass(frozen=True)
class Case:
    """One API, asked in one way."""

    api: str
    stream: bool

    def house(self, script: list[Step], judge: Callable[[Point], Verdict], **settings: Any) -> House:
        """A gateway whose model follows the script and is told of refusals."""
        return House(script, judge, **{"on_refusal": "continue", **settings})

    def talker(self, house: House) -> Talker:
        """A client of it."""
        return APIS[self.api](house.url, stream=self.stream)


CASES = [Case(api, stream) for api in APIS for stream in (True, False) if stream or api != "gemini-array"]


def _name(case: Case) -> str:
    return f"{case.api}-{'stream' if case.stream else 'whole'}"


every_case = pytest.mark.parametrize("case", CASES, ids=_name)
every_stream = pytest.mark.parametrize("case", [case for case in CASES if case.stream], ids=_name)
