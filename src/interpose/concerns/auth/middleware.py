"""A middleware that hands a tool's `AuthChallenge` to the model as a result.

Knows: the text in which the model reads a challenge. Does not know: who raises one, what a token is.
"""

import json

from interpose.concerns.auth.contract import SupportsAuth
from interpose.contracts.auth import AuthChallenge
from interpose.contracts.tools import Arguments, Flow, FlowMiddleware


class AuthMiddleware(FlowMiddleware, SupportsAuth):
    """Turns an `AuthChallenge` of the tool into a result, so that the model can tell the person what to do.

    The result is the JSON text `{"auth_required": true, "message": …, "url": …, "code": …, "scope": …}` without the
    fields that are empty. Nothing waits: the person acts, the model calls the tool again, and the tool has its token.
    Everything else that is raised goes on unchanged, a challenge that is only the cause of something else too.

    Put it innermost, so that only the tool's own challenge is meant. One instance may serve many drivers and threads.
    """

    def flow(self, tool_name: str, arguments: Arguments) -> Flow:
        """Around one call."""
        try:
            return (yield tool_name, arguments)
        except AuthChallenge as challenge:
            return _text(challenge)


def _text(challenge: AuthChallenge) -> str:
    fields = {"url": challenge.url, "code": challenge.code, "scope": challenge.scope}
    given = {name: value for name, value in fields.items() if value}
    return json.dumps({"auth_required": True, "message": challenge.message, **given}, ensure_ascii=False)
