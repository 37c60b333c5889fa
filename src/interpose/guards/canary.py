"""The call that must always be refused: `interpose doctor` sends it to prove that judging works end to end."""

from interpose.contracts.effects import BlockTool, EvaluationContext, HookInput, Registration

CANARY_ID = "interpose.canary"
CANARY_TOOL = "interpose_canary"
CANARY_REASON = "this call exists to be refused; seeing this text means that judging works"


def canary() -> Registration:
    """Refuses every call of the tool `interpose_canary`, which no agent has."""
    return Registration(
        id=CANARY_ID,
        description="refuses the doctor's canary call",
        hooks=("before_tool",),
        tool_names=(CANARY_TOOL,),
        evaluate=_refuse,
        fail_closed=True,
    )


def _refuse(_given: HookInput, _context: EvaluationContext) -> tuple[BlockTool]:
    return (BlockTool(CANARY_REASON),)
