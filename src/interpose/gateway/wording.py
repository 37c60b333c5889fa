"""The one line in which a reply or a request says what interpose did.

Knows: words. Does not know: any API.
"""

from collections.abc import Sequence

from interpose.contracts.json import JsonObject
from interpose.contracts.verdict import Refusal, Reminder, Verdict
from interpose.contracts.wording import framed, lines_below, refusal_text
from interpose.wire.jsonbytes import write_json

REMINDER_OPEN = "<system-reminder>"
REMINDER_CLOSE = "</system-reminder>"


TOLD_AS = "[interpose] "
"""How each line of ours begins that stands in what the model said."""


def refusal_line(tool: str, refusal: Refusal) -> str:
    """What stands in the reply in the place of a refused call."""
    return f"{TOLD_AS}{refusal_text(tool, refusal)}"


def refused_line(tool: str, verdict: Verdict) -> str:
    """As `refusal_line`, of a verdict; one that names no refusal gets words all the same."""
    return refusal_line(tool, verdict.refusal or Refusal("interpose", "no reason was given"))


def withheld_prompt(refusal: Refusal) -> str:
    """What the model's history has in the place of a prompt that was refused."""
    return f"the prompt was withheld by {refusal.handler}: {refusal.reason}"


def nudge_line(nudge: str) -> str:
    """What the client is told ahead of what the model says after a nudge."""
    return f"{TOLD_AS}the turn goes on: {nudge}"


def changed_line(arguments: JsonObject) -> str:
    """What stands below the result of a call that ran with other arguments than the model gave it."""
    return f"{TOLD_AS}this call ran with other arguments than yours: {write_json(arguments).decode()}"


def required_line(tool: str) -> str:
    """What the model is reminded of where it cannot be forced to use a tool."""
    return f"Use the tool {tool} next."


def reminded(message: str) -> str:
    """A message of ours to the model, in the place of the person's."""
    return f"{REMINDER_OPEN}\n{message}\n{REMINDER_CLOSE}"


def reminder_block(reminders: Sequence[Reminder]) -> str:
    """All reminders of one moment as one block, repeats left out; "" for none."""
    messages = list(dict.fromkeys(reminder.message for reminder in reminders))
    if not messages:
        return ""
    return f"{REMINDER_OPEN}\n" + "\n\n".join(messages) + f"\n{REMINDER_CLOSE}"


def result_addition(verdict: Verdict, earlier: Sequence[Reminder] = ()) -> str:
    """What stands below a result's text: annotation lines, then reminders, the call's `earlier` ones first."""
    return framed(lines_below(verdict.annotations), reminder_block([*earlier, *verdict.reminders]))
