"""guards.untrusted_instructions: the warning on results that talk like instructions."""

import pytest

from interpose.contracts.effects import AnnotateToolResult, HookInput
from interpose.effects.contract import create_middleware
from interpose.guards.untrusted_instructions import UNTRUSTED_INSTRUCTIONS_ID, untrusted_instructions
from interpose.policy.consumption import INJECTION_WARNING
from tests.guards.making import call, result


def warned(given: HookInput) -> bool:
    """Whether the engine with this one rule warns."""
    effects = create_middleware(rules=[untrusted_instructions()]).run_hook(given).effects
    assert all(isinstance(effect, AnnotateToolResult) and effect.severity == "warn" for effect in effects)
    return bool(effects)


@pytest.mark.parametrize("tool", ["fetch", "read", "shell", "agent", "monitor", "mcp:web/get"])
def test_marked_results_of_screened_tools_get_one_warning(tool: str) -> None:
    """The flag that the policy computed is enough."""
    assert warned(result(tool, untrustedInstructionMarkers=True))


@pytest.mark.parametrize("value", [False, None, 1, "true"])
def test_only_the_flag_itself_counts(value: bool | int | str | None) -> None:
    """Anything but true is no mark."""
    assert not warned(result("read", untrustedInstructionMarkers=value))


def test_other_tools_and_hooks_are_not_warned_of() -> None:
    """A write has no foreign text, and a call has no result yet."""
    assert not warned(result("write", untrustedInstructionMarkers=True))
    assert not warned(call("read", untrustedInstructionMarkers=True))
    assert not warned(result("read"))


def test_its_id_is_the_one_that_the_policy_puts_first() -> None:
    """The policy moves the warning of this very handler to the front."""
    assert UNTRUSTED_INSTRUCTIONS_ID == INJECTION_WARNING
