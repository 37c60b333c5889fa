"""The rule `nudge.stalled-turn`: a turn that announced an action and called no tool.

Knows: how people and models announce, defer and finish in English. Does not know: tools or sessions. A wrong nudge is
worse than a missed one, so whatever sounds like waiting for the person is left alone.
"""

import re
from collections.abc import Iterator
from typing import Final

from interpose.contracts.effects import HookInput, RequestContinuation
from interpose.effects.rules import Rule, RuleDefinition
from interpose.guards.given import ended_normally, number_of, whole_text
from interpose.guards.sentences import is_question, last_line, last_sentence, opened

STALLED_TURN_ID: Final = "nudge.stalled-turn"
_MESSAGE: Final = (
    "You announced a next step and ended the turn without calling a tool. Take that step now, or say that you are "
    "finished and waiting."
)


def _listed(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_STEMS: Final = _listed(
    "add analyse analyze apply audit build change check compare compile create debug delete edit execute explore find "
    "fix format grep implement inspect install investigate list load look modify open patch query read refactor remove "
    "rename replace review run scan search test trace update validate verify write"
)
_DOUBLED: Final = frozenset({"debug", "format", "run", "scan"})
_EXTENSIONS: Final = frozenset(
    _listed(
        "c cc cfg cjs cmake conf cpp cs css csv env go h hpp html ini java jl js json jsx lock log lua md mjs nc php "
        "py rb rs rst sh sql toml ts tsx txt yaml yml"
    )
)
_PROGRAMS: Final = _listed(
    "npm npx pnpm yarn bun git cargo rustc cmake ctest ninja meson bazel gradle mvn pytest pip python python3 node "
    "deno tsc biome eslint prettier jest vitest ruff mypy docker kubectl mpirun srun sbatch gcc clang"
)


def _forms(stem: str) -> Iterator[str]:
    yield from (stem, stem + "s", stem + "es", stem + "ed", stem + "ing")
    if stem.endswith("e"):
        yield from (stem + "d", stem[:-1] + "ing")
    if stem.endswith("y"):
        yield from (stem[:-1] + "ies", stem[:-1] + "ied")
    if stem in _DOUBLED:
        yield from (stem + stem[-1] + "ed", stem + stem[-1] + "ing")


def _words(words: str) -> re.Pattern[str]:
    return re.compile(words, re.IGNORECASE)


_ACTION_FORMS: Final = "|".join(sorted({form for stem in _STEMS for form in _forms(stem)}, key=len, reverse=True))

_FINISHED: Final = _words(r"(?:all done|done|completed?|all set)\b|(?:here['\u2019]s |here is )?(?:a )?summary\b")
_INTENT: Final = _words(
    r"\b(?:let me|(?:now |next,? )?I['\u2019]ll|(?:now |next,? )?I will|(?:now |next,? )?I am going to"
    r"|(?:now |next,? )?I['\u2019]m going to|now I|next I|let['\u2019]s|let us)\b"
)
_HINTS: Final = ("let", "ll", "i will", "going to", "now i", "next i", "next, i")
"""A sentence with none of these, in lower case, has no intent: quicker to say than by the pattern."""

_CONDITION: Final = _words(r"\b(?:if|once|unless|until|when|whenever)\b")
_INVITES: Final = _words(r"\b(?:ask|give|point|say|send|share|tell|confirm|approve|reply|respond|answer|choose|pick)\b")
_THEN: Final = _words(r"\b(?:and|then)\W*$")
_WAITING: Final = _words(r"\bawait(?:ing)?\b|\bwaiting (?:for|on)\b")
_NOT: Final = _words(rf"\bnot (?:yet )?(?:{_ACTION_FORMS}|starting|making|doing)\b")
_YET: Final = _words(r"\byet\b")
_IF: Final = _words(r"\bif\b")
_YOU: Final = _words(r"\byou\b")
_LEFT_TO_THE_PERSON: Final = _words(
    r"\bif (?:needed|necessary|requested)\b|\bwhen(?:ever)? you\b|\b(?:after|as soon as|until) you\b"
    r"|\b(?:upon|on|after|with|pending|following) your (?:approval|go-?ahead|confirmation|permission|consent|okay|ok"
    r"|answer|reply|signal|say-so|decision|choice)\b"
)
_PUT_OFF: Final = _words(
    r"\b(?:later(?: on)?|afterwards?|tomorrow|tonight|another time|next (?:time|week|month|sprint)|some ?day)\W*$"
)
_DEFERRED: Final = _words(r"\W*(?:(?:just|simply|now)\s+)?(?:wait|hold|stand\s+by|pause|defer|not|never)\b")
_CONCRETE: Final = _words(
    rf"\b(?:{_ACTION_FORMS})\s++"
    r"(?:(?:at|for|in|into|on|through|to)\s++)?+"
    r"(?:(?:a|an|my|our|that|the|their|these|this|those|your)\s++)?+"
    r"[\"'\u201c\u201d\u2018\u2019`./~]*+(?!(?:again|everyone|later|next|now|soon|then|you)\b)[A-Za-z0-9_-]"
)
_FOLDERS: Final = ("./", "../", "~/")
_EXTENSION: Final = re.compile(r"[A-Za-z]+(?!\w)")
_PROGRAM: Final = _words(rf"(?<![\w./-])(?:{'|'.join(_PROGRAMS)})\s+[\w./~-]")


def stalled_turn() -> RuleDefinition:
    """The rule; it keeps no state."""
    return RuleDefinition(
        rule=Rule(
            id=STALLED_TURN_ID,
            description="carries on a turn that announced an action and called no tool",
            enabled=True,
            hooks=("turn_end",),
            effect_kinds=("request_continuation",),
        ),
        effects=(RequestContinuation(_MESSAGE),),
        predicate=is_stalled,
        reads=("turnToolCalls",),
    )


def is_stalled(given: HookInput) -> bool:
    """Whether a turn without tool calls ended by itself and its last sentence announces an action."""
    if given.hook != "turn_end" or number_of(given, "turnToolCalls") != 0 or not ended_normally(given):
        return False
    text = whole_text(given)
    return text is not None and announces_action(text)


def announces_action(text: str) -> bool:
    """Whether the last sentence of `text` says that the writer is about to act. Pure; any thread may call it."""
    line = last_line(text)
    sentence = last_sentence(line)
    lowered = sentence.lower()
    may_intend = any(map(lowered.__contains__, _HINTS))
    if not may_intend and not sentence.endswith(":"):
        return False
    if is_question(sentence) or "let me know" in lowered:
        return False
    if _FINISHED.match(sentence) or _FINISHED.match(opened(line)):
        return False

    intent = _INTENT.search(sentence) if may_intend else None
    if intent is None:
        return sentence.endswith(":") and _CONCRETE.search(sentence) is not None
    if _is_left_to_the_person(sentence, sentence[: intent.start()]):
        return False
    return _is_concrete(sentence[intent.end() :])


def _is_left_to_the_person(sentence: str, before: str) -> bool:
    return (
        _CONDITION.search(before) is not None
        or _follows(before, _INVITES, _THEN)
        or _WAITING.search(before) is not None
        or (_NOT.search(before) is not None and _YET.search(before) is not None)
        or _LEFT_TO_THE_PERSON.search(sentence) is not None
        or _PUT_OFF.search(sentence) is not None
        or _follows(sentence, _IF, _YOU)
    )


def _follows(text: str, first: re.Pattern[str], later: re.Pattern[str]) -> bool:
    # Two searches take time in proportion to the text, where one pattern with `.*` between would take its square.
    start = first.search(text)
    return start is not None and later.search(text, start.end()) is not None


def _is_concrete(clause: str) -> bool:
    if _DEFERRED.match(clause):
        return False
    if _CONCRETE.search(clause):
        return True
    if _CONDITION.search(clause):
        return False
    return any(_is_path(token) for token in clause.split()) or _PROGRAM.search(clause) is not None


def _is_path(token: str) -> bool:
    token = token.lstrip("\"'`([<").rstrip("\"'`)]>.,;:!")
    if token.startswith(_FOLDERS):
        return True
    _, dot, ending = token.rpartition(".")
    extension = _EXTENSION.match(ending) if dot else None
    return extension is not None and extension[0].lower() in _EXTENSIONS
