"""A middleware list around a tool: one middleware is told of every call, one asks before it runs."""

from typing import Any

from interpose.chain.chain import Chain
from interpose.concerns.hooks.middleware import HooksMiddleware
from interpose.concerns.permission.middleware import PermissionMiddleware


def shell(tool_name: str, arguments: dict[str, Any]) -> str:
    return f"{tool_name} ran {arguments['command']}"


hooks = HooksMiddleware(pre=[lambda tool_name, arguments: print("called", tool_name, arguments)])
permission = PermissionMiddleware(consent=lambda *call: call == ("shell", {"command": "ls"}))
chain = Chain([hooks, permission])

print(chain.explain())
print(chain.call("shell", {"command": "ls"}, shell))
print(chain.call("shell", {"command": "rm -rf build"}, shell))
