"""gateway.load: what requests hold together."""

import pytest

from interpose.gateway.load import Load, Share, TooMuchAtOnce


def test_shares_fill_a_load_and_give_it_back() -> None:
    """What does not fit is not held; what is over holds nothing, and takes nothing any more."""
    load = Load(10)
    one, other = Share(load), Share(load)
    one.add(7)
    with pytest.raises(TooMuchAtOnce, match="try again"):
        other.add(4)
    other.add(3)
    assert load.held == 10

    one.end()
    one.end()
    with pytest.raises(TooMuchAtOnce):
        one.add(1)
    assert load.held == 3
