"""The words in which a verdict is told to the model, the same at every mount.

Knows: how a refusal and annotations read. Does not know: where they are shown.
"""

from collections.abc import Sequence

from interpose.contracts.stages import Annotation, Stage
from interpose.contracts.verdict import Refusal


def refusal_text(tool: str, refusal: Refusal) -> str:
    """One readable sentence that stands in the place of a result: which tool, who refused, and why."""
    return f"{tool} was refused by {refusal.handler}: {refusal.reason}"


def withheld_text(tool: str, refusal: Refusal) -> str:
    """As `refusal_text`, for a call that ran and whose output may not be seen."""
    return f"the output of {tool} was withheld by {refusal.handler}: {refusal.reason}"


def doubt_text(stage: Stage, reasons: Sequence[str], then: str = "") -> str:
    """Why something did not happen that nobody could judge, and `then` what came of asking."""
    what = "what this call would do" if stage == "tool.call" else "whether this may pass"
    way_out = " Write it so that its program and files can be read before it runs." if stage == "tool.call" else ""
    return f"it cannot be told {what}{then}: {'; '.join(dict.fromkeys(reasons))}.{way_out}"


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
    """`output` with the annotation lines: those in front, the output, the others, with a blank line between each."""
    return framed(lines_in_front(annotations), output, lines_below(annotations))


def lines_in_front(annotations: Sequence[Annotation]) -> str:
    """The lines that the model must read before the output."""
    return annotation_lines([annotation for annotation in annotations if annotation.in_front])


def lines_below(annotations: Sequence[Annotation]) -> str:
    """The lines that stand below the output."""
    return annotation_lines([annotation for annotation in annotations if not annotation.in_front])


def framed(*pieces: str) -> str:
    """The pieces that say something, with a blank line between each."""
    return "\n\n".join(piece for piece in pieces if piece)
