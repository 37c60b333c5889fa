"""userhooks.merge: precedence, and what a project cannot take away."""

from hypothesis import given, settings
from hypothesis import strategies as st

from interpose.contracts.effects import BlockTool, LockTools
from interpose.userhooks.hooks import ORIGINS, EffectSpec, Origin, Source, UserHook
from interpose.userhooks.merge import merge


def hook(name: str, origin: Origin, *, guard: bool = False, enabled: bool = True, text: str = "") -> UserHook:
    """A hook of an origin; `text` tells two apart."""
    effect = BlockTool(text or "no") if guard else LockTools()
    return UserHook(
        name, Source(origin, f"{origin}.yaml"), text or "h", "before_tool", EffectSpec(effect), enabled=enabled
    )


def ids(hooks: tuple[UserHook, ...]) -> list[str]:
    """Id and origin, in order."""
    return [f"{hook.id}:{hook.source.origin}" for hook in hooks]


def test_a_higher_origin_stands_where_the_lower_one_stood() -> None:
    """The winner keeps the loser's place; losers are told with their winner."""
    hooks = [hook("b", "project.local"), hook("a", "project"), hook("b", "project"), hook("c", "project")]

    merged = merge(hooks)

    assert ids(merged.hooks) == ["a:project", "b:project.local", "c:project"]
    assert [(o.winner.source.origin, o.loser.source.origin) for o in merged.overridden] == [
        ("project.local", "project")
    ]


def test_the_later_of_two_in_one_file_counts() -> None:
    """Where the first stood."""
    merged = merge([hook("a", "project", text="1"), hook("b", "project"), hook("a", "project", text="2")])

    assert [(found.id, found.hash) for found in merged.hooks] == [("a", "2"), ("b", "h")]


def test_a_users_guard_stays_when_a_project_has_its_id() -> None:
    """Both run, the project's under a name of its own, and the collision is told."""
    merged = merge([hook("a", "project", guard=True), hook("a", "user", guard=True)])

    assert ids(merged.hooks) == ["a:user", "a@project:project"]
    assert [(c.guard.source.origin, c.hook.source.origin) for c in merged.collisions] == [("user", "project")]
    assert merged.overridden == ()


def test_a_projects_own_files_override_each_other_beside_a_users_guard() -> None:
    """The local file's hook replaces the project's, not the user's."""
    merged = merge([hook("a", "user", guard=True), hook("a", "project"), hook("a", "project.local")])

    assert ids(merged.hooks) == ["a:user", "a@project.local:project.local"]
    assert len(merged.overridden) == 1
    assert len(merged.collisions) == 2


def test_a_user_hook_that_refuses_nothing_may_be_overridden() -> None:
    """So may a guard that its owner switched off."""
    assert ids(merge([hook("a", "user"), hook("a", "project")]).hooks) == ["a:project"]
    assert ids(merge([hook("a", "user", guard=True, enabled=False), hook("a", "project")]).hooks) == ["a:project"]


def test_the_user_replaces_their_own_guard() -> None:
    """And an extension's."""
    first, second = hook("a", "user", guard=True, text="1"), hook("a", "user", guard=True, text="2")

    assert [found.hash for found in merge([hook("a", "extension", guard=True), first, second]).hooks] == ["2"]


HOOKS = st.lists(
    st.builds(
        hook,
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(ORIGINS),
        guard=st.booleans(),
        enabled=st.booleans(),
        text=st.sampled_from(["1", "2"]),
    ),
    max_size=10,
)


@settings(deadline=None)
@given(HOOKS)
def test_ids_stay_unique_and_no_users_guard_is_lost_to_a_project(hooks: list[UserHook]) -> None:
    """For any set of hooks, merging twice changes nothing either."""
    merged = merge(hooks)

    names = [found.id for found in merged.hooks]
    assert len(names) == len(set(names))
    users = {found.id: found for found in hooks if found.source.origin == "user"}
    for name, last in users.items():
        if last.is_guard and last.enabled:
            assert last in merged.hooks, name
    assert len(merged.hooks) + len(merged.overridden) == len(hooks)
    assert merge(merged.hooks).hooks == tuple(sorted(merged.hooks, key=lambda h: ORIGINS.index(h.source.origin)))
