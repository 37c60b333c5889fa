"""The middleware list that a driver gets unless somebody makes another.

Knows: the concerns and their order. Does not know: drivers.
"""

from collections.abc import Callable

from interpose.assembly.protection import LoadedPolicy
from interpose.concerns.auth.middleware import AuthMiddleware
from interpose.concerns.hooks.middleware import HooksMiddleware
from interpose.concerns.permission.contract import ConsentHandler
from interpose.concerns.permission.middleware import PermissionMiddleware
from interpose.concerns.policy.middleware import PolicyMiddleware
from interpose.contracts.errors import MisuseError
from interpose.contracts.ports import Policy
from interpose.contracts.stages import Context
from interpose.contracts.tools import ToolMiddleware


def default_middleware(
    policy: LoadedPolicy | Policy,
    *,
    consent: ConsentHandler | PermissionMiddleware | None = None,
    hooks: HooksMiddleware | None = None,
    auth: bool = True,
    context: Context | Callable[[], Context] | None = None,
) -> list[ToolMiddleware]:
    """The concerns in their order, outermost first: hooks, policy, permission, auth.

    Observers see what the model proposed and what came of it, consent is asked about exactly what will run, and only
    the tool's own challenge is meant. Without `consent` nobody is asked and without `hooks` nobody is told: neither
    is in the list then, and what the policy lets pass runs. A PermissionMiddleware or HooksMiddleware of yours is taken
    as it is, so that you can change its handlers later. `context` is who acts, or a function that says so; a loaded
    policy brings its own. Raises MisuseError for what is no policy, and when `policy` is no loaded policy and there is
    no `context`.
    """
    judging, acting = (policy.policy, policy.acting) if isinstance(policy, LoadedPolicy) else (policy, None)
    if not hasattr(judging, "judge"):
        raise MisuseError(f"default_middleware({judging!r:.100}): expected what interpose.load_policy() gives")
    context = context or acting
    if context is None:
        raise MisuseError("default_middleware(policy, …) needs context=Context(…): only a loaded policy brings its own")

    middleware: list[ToolMiddleware] = [hooks] if hooks is not None else []
    middleware.append(PolicyMiddleware(judging, context=context))
    if consent is not None:
        asking = consent if isinstance(consent, PermissionMiddleware) else PermissionMiddleware(consent=consent)
        middleware.append(asking)
    if auth:
        middleware.append(AuthMiddleware())
    return middleware
