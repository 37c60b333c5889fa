"""Consent through the port `Approvals`.

Knows: how a call becomes a request, and what silence means. Does not know: where the person sees it.
"""

import logging
from typing import Any

from interpose.contracts.digest import call_digest
from interpose.contracts.ports import ApprovalRequest, Approvals
from interpose.contracts.settings import of_kind, refused, seconds

_log = logging.getLogger(__name__)


class ApprovalsConsent:
    """A consent handler that asks `approvals` and waits `timeout_s` for the answer; silence denies.

    `reason` tells the person why they are asked. Any thread may ask, many at once.
    """

    def __init__(self, approvals: Approvals, *, timeout_s: float = 300.0, reason: str = "") -> None:
        if isinstance(approvals, type) or not callable(getattr(approvals, "ask", None)):
            raise refused("ApprovalsConsent(approvals)", approvals, "what interpose.open_approvals() gives")
        self._approvals = approvals
        self._timeout_s = seconds("ApprovalsConsent(timeout_s=…)", timeout_s)
        self._reason = of_kind("ApprovalsConsent(reason=…)", reason, str, "a text")

    def __call__(self, tool_name: str, arguments: dict[str, Any]) -> bool:
        """Whether a person said yes to exactly this; raises what the port raises."""
        request = ApprovalRequest(tool_name, arguments, call_digest(tool_name, arguments), self._reason)
        answer = self._approvals.ask(request, timeout_s=self._timeout_s)
        if answer is None:
            _log.warning("nobody answered within %g s whether %s may run: denied", self._timeout_s, tool_name)
            return False
        return answer
