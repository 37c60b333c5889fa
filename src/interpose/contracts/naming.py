"""What can be the name of a tool, said in the same words wherever one is given.

Knows: what a name is made of. Does not know: which tools there are, what the APIs of models take on top of it.
"""

from typing import Final

NAME_MOST: Final = 256


def not_a_name(name: object) -> str | None:
    """Why it can be no tool's name, in words that hold little of it; None for one that can. Pure."""
    if type(name) is str and 0 < len(name) <= NAME_MOST and name.isprintable() and name[0] != " " != name[-1]:
        return None
    if isinstance(name, str) and type(name) is not str:
        return not_a_name(str.__str__(name))
    shown = f"{name!r:.80}"
    length = f" of {len(name):,} characters" if isinstance(name, str) and len(name) > NAME_MOST else ""
    return (
        f"the tool name {shown}{length}: expected 1 to {NAME_MOST} printable characters without a space at either end"
    )
