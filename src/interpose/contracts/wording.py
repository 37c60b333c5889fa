"""The words in which a verdict is told to the model, the same at every mount.

Knows: how a refusal and annotations read. Does not know: where they are shown.
"""

from collections.abc import Sequence

from interpose.contracts.stages import Annotation
from interpose.contracts.verdict import Refusal


def refusal_text(tool: str, refusal: Refusal) -> str:
    """One readable sentence that stands in the place of a result: which tool, who refused, and why."""
    return f"{tool} was refused by {refusal.handler}: {refusal.reason}"


def withheld_text(tool: str, refusal: Refusal) -> str:
    """As `refusal_text`, for a call that ran and whose output may not be seen."""
    return f"the output of {tool} was withheld by {refusal.handler}: {refusal.reason}"


def annotation_lines(annotations: Sequence[Annotation]) -> str:
    """One `[interpose:info] message` or `[interpose:warn] message` line each, in order; "" for none.

    A message of several lines stays one annotation: every line of it carries the mark.
    """
    return "\n".join(
        f"[interpose:{annotation.severity}] {line}"
        for annotation in annotations
        for line in annotation.message.splitlines() or [""]
    )


def annotated(output: str, annotations: Sequence[Annotation]) -> str:
    """`output`, a blank line and the annotation lines; without annotations the output as it is."""
    if not annotations:
        return output

    lines = annotation_lines(annotations)
    return f"{output}\n\n{lines}" if output else lines
