"""The words of verdicts."""

from interpose.contracts.stages import Annotation
from interpose.contracts.verdict import Refusal
from interpose.contracts.wording import annotated, annotation_lines, refusal_text, withheld_text

REFUSAL = Refusal("no-rm", "deletes a tree")
NOTES = (Annotation("a", "warn", "one\ntwo"), Annotation("b", "info", "three"))


def test_a_refusal_names_the_tool_the_handler_and_the_reason() -> None:
    """Whoever reads it knows what happened and whom to ask."""
    assert refusal_text("Bash", REFUSAL) == "Bash was refused by no-rm: deletes a tree"
    assert withheld_text("Bash", REFUSAL) == "the output of Bash was withheld by no-rm: deletes a tree"


def test_every_line_of_an_annotation_carries_its_mark() -> None:
    """A message of two lines cannot pass off its second line as the tool's own output."""
    assert annotation_lines(NOTES) == "[interpose:warn] one\n[interpose:warn] two\n[interpose:info] three"
    assert annotation_lines([Annotation("a", "info", "")]) == "[interpose:info] "
    assert annotation_lines(()) == ""


def test_annotations_stand_after_a_blank_line() -> None:
    """The output comes first and is unchanged; without annotations nothing is added."""
    assert annotated("out", NOTES[1:]) == "out\n\n[interpose:info] three"
    assert annotated("", NOTES[1:]) == "[interpose:info] three"
    assert annotated("out", ()) == "out"


def test_what_must_be_read_first_stands_in_front() -> None:
    """A warning about the output stands before it, the other lines below, blank lines between."""
    warning = Annotation("w", "warn", "careful", in_front=True)
    assert annotated("out", (*NOTES[1:], warning)) == "[interpose:warn] careful\n\nout\n\n[interpose:info] three"
    assert annotated("", (warning,)) == "[interpose:warn] careful"
