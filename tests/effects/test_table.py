"""effects.table: tiers, generations, slots, conflicts, publication."""

import threading
from typing import Any

import pytest

from interpose.contracts.effects import Registration
from interpose.contracts.errors import MisuseError
from interpose.effects.diagnostics import Diagnostic, DiagnosticOutlet, RegistrationConflict
from interpose.effects.table import Dropped, RegistrationTable, Rejection, Replacement, ReplacementReport
from tests.effects.making import emitting, ids, unheard

OWNER = "user-hooks"


def table(*hosts: str, fixed: tuple[str, ...] = (), told: list[Diagnostic] | None = None) -> RegistrationTable:
    """A table with these ids in its fixed and host tiers."""
    heard = [] if told is None else told
    return RegistrationTable(
        [emitting(one) for one in fixed], [emitting(one) for one in hosts], outlet=DiagnosticOutlet(heard.append)
    )


def prepared(of: RegistrationTable, generation: int, *offered: str) -> Replacement:
    """A replacement that must be possible."""
    replacement = of.prepare_replacement(OWNER, generation, [emitting(one) for one in offered])
    assert isinstance(replacement, Replacement)
    return replacement


def replaced(of: RegistrationTable, generation: int, *offered: str) -> ReplacementReport:
    """Replaces the owned set."""
    return of.replace_registrations(OWNER, generation, [emitting(one) for one in offered])


def test_a_set_is_replaced_as_one_unit_under_growing_generations() -> None:
    """Only a whole number above the active generation applies; the old set goes whole."""
    one = table("host")
    assert one.owned_generation(OWNER) == 0
    assert replaced(one, 2, "a", "b") == ReplacementReport(True, OWNER, 2)
    assert ids(one.list()) == ["host", "a", "b"]
    impossible: list[Any] = [2, 1, 0, 1.5, 3.5, True, "3", None]
    for generation in impossible:
        assert replaced(one, generation, "c") == ReplacementReport(False, OWNER, 2, "stale")
    assert replaced(one, 3, "c").applied
    assert ids(one.list()) == ["host", "c"]
    assert one.owned_generation(OWNER) == 3


def test_an_unknown_owner_is_refused() -> None:
    """An owner the table was not made with cannot hold a set, and its generation is 0."""
    one = table()
    replaced(one, 2, "a")
    assert one.prepare_replacement("stranger", 1, []) == Rejection("stranger", "unknown-owner", 0)
    report = one.replace_registrations("stranger", 9, [emitting("x")])
    assert report == ReplacementReport(False, "stranger", 0, "unknown-owner")
    report.dispose()
    assert (one.owned_generation("stranger"), ids(one.list())) == (0, ["a"])


def test_a_stale_disposer_is_harmless() -> None:
    """Disposing of a generation that is no longer active does nothing; of the active one it empties the set."""
    one = table("host")
    first, second = replaced(one, 1, "a"), replaced(one, 2, "b")
    first.dispose()
    assert ids(one.list()) == ["host", "b"]
    before = one.list()
    second.dispose()
    assert ids(one.list()) == ["host"]
    assert ids(before) == ["host", "b"]


def test_a_disposed_generation_is_never_reused_and_disposing_twice_is_once() -> None:
    """Generation and anchor outlive the set; an empty set is not disposed of again."""
    one = table("a")
    report = replaced(one, 4, "owned")
    one.register_hook(emitting("b"))
    report.dispose()
    assert (one.owned_generation(OWNER), replaced(one, 4, "x").reason) == (4, "stale")
    waiting = prepared(one, 5, "again")
    report.dispose()
    assert waiting.current()
    waiting.publish()
    assert ids(one.list()) == ["a", "again", "b"]


def test_preparing_publishes_nothing_and_publishing_returns_nothing() -> None:
    """A prepared state is live only after publish; then neither it nor an older one is current."""
    one = table("host")
    older, newer = prepared(one, 1, "a"), prepared(one, 2, "b")
    assert ids(one.list()) == ["host"]
    assert older.current()
    publish: Any = newer.publish
    assert publish() is None
    assert ids(one.list()) == ["host", "b"]
    assert not older.current()
    assert not newer.current()
    assert not older.publish_if_current()
    assert ids(one.list()) == ["host", "b"]


def test_any_change_makes_a_prepared_replacement_not_current() -> None:
    """A host append, an effective dispose and discarding do; a host that is ignored and a stale dispose do not."""
    one = table("host")
    report = replaced(one, 1, "a")
    waiting = prepared(one, 2, "b")
    one.register_hook(emitting("host"))
    assert waiting.current()
    one.register_hook(emitting("other"))
    assert not waiting.current()
    again = prepared(one, 2, "b")
    report.dispose()
    assert not again.current()
    last = prepared(one, 2, "b")
    last.discard()
    assert not last.current()
    assert not last.publish_if_current()
    assert ids(one.list()) == ["host", "other"]


def test_publishing_what_is_not_current_overwrites() -> None:
    """`publish` checks nothing, as it says: what came between is lost; `publish_if_current` refuses."""
    one = table("host")
    waiting = prepared(one, 1, "a")
    one.register_hook(emitting("between"))
    assert not waiting.publish_if_current()
    waiting.publish()
    assert ids(one.list()) == ["host", "a"]


def test_a_replacement_disposes_of_its_own_generation_alone() -> None:
    """Before publication and after supersession nothing happens."""
    one = table()
    first = prepared(one, 1, "a")
    first.dispose()
    assert first.current()
    assert first.publish_if_current()
    first.dispose()
    assert ids(one.list()) == []


def test_taken_ids_are_dropped_in_order() -> None:
    """Fixed, host and repeated ids are dropped and told after publication, in the order offered."""
    told: list[Diagnostic] = []
    one = table("host", fixed=("rule",), told=told)
    waiting = prepared(one, 1, "a", "host", "rule", "a", "b")
    assert waiting.dropped == (Dropped("host", "host"), Dropped("rule", "builtin"), Dropped("a", "owned"))
    assert (waiting.size, waiting.owner, waiting.generation) == (2, OWNER, 1)
    with pytest.raises(MisuseError, match="generation 1 of 'user-hooks' is not published"):
        waiting.emit_conflicts()
    waiting.publish()
    assert told == []
    waiting.emit_conflicts()
    assert told == [
        RegistrationConflict("host", OWNER, 1, "host", "dropped"),
        RegistrationConflict("rule", OWNER, 1, "builtin", "dropped"),
        RegistrationConflict("a", OWNER, 1, "owned", "dropped"),
    ]
    assert ids(one.list()) == ["rule", "host", "a", "b"]


def test_hosts_are_appended_and_the_first_of_an_id_wins() -> None:
    """An id that is fixed or host already is left silently, at construction and later."""
    told: list[Diagnostic] = []
    first = emitting("a")
    one = RegistrationTable([emitting("rule")], [first, emitting("a"), emitting("rule")])
    one.register_hook(emitting("rule"))
    one.register_hook(emitting("a"))
    assert ids(one.list()) == ["rule", "a"]
    assert one.list()[1] is first
    assert told == []


def test_a_host_evicts_an_owned_registration_and_stands_at_the_end() -> None:
    """The owned one leaves its slot, the host is appended, one diagnostic follows, generation stays."""
    told: list[Diagnostic] = []
    one = table("a", told=told)
    replaced(one, 3, "x", "y")
    one.register_hook(emitting("b"))
    one.register_hook(emitting("x"))
    assert ids(one.list()) == ["a", "y", "b", "x"]
    assert told == [RegistrationConflict("x", OWNER, 3, "host", "evicted")]
    assert one.owned_generation(OWNER) == 3


def test_the_slot_stays_where_it_was_first_applied() -> None:
    """Between A and B across replacements, evictions and an empty set."""
    one = table("A")
    replaced(one, 1, "x")
    one.register_hook(emitting("B"))
    replaced(one, 2, "y", "z")
    assert ids(one.list()) == ["A", "y", "z", "B"]
    assert replaced(one, 3).applied
    assert ids(one.list()) == ["A", "B"]
    replaced(one, 4, "w")
    assert ids(one.list()) == ["A", "w", "B"]


def test_several_owners_share_one_id_namespace_and_keep_their_order() -> None:
    """At one anchor owners stand in the order the table was made with; an id of another owner is taken."""
    one = RegistrationTable(hosts=[emitting("host")], owners=("first", "second"), outlet=DiagnosticOutlet(unheard))
    one.replace_registrations("second", 1, [emitting("s"), emitting("shared")])
    report = one.replace_registrations("first", 1, [emitting("f"), emitting("shared")])
    assert report.dropped == (Dropped("shared", "owned"),)
    one.register_hook(emitting("later"))
    assert ids(one.list()) == ["host", "f", "s", "shared", "later"]
    assert one.replace_registrations("second", 2, [emitting("s2")]).applied
    assert ids(one.list()) == ["host", "f", "s2", "later"]


def test_a_sink_sees_what_is_published_and_may_come_back() -> None:
    """A sink that registers a colliding host while it is told evicts the owned one, with no id twice."""
    seen: list[list[str]] = []
    outlet = DiagnosticOutlet()
    one = RegistrationTable(hosts=[emitting("host")], outlet=outlet)

    def come_back(diagnostic: Diagnostic) -> None:
        seen.append(ids(one.list()))
        if isinstance(diagnostic, RegistrationConflict) and diagnostic.action == "dropped":
            one.register_hook(emitting("owned"))

    outlet.sink = come_back
    report = replaced(one, 1, "host", "owned", "kept")
    assert seen == [["host", "owned", "kept"], ["host", "kept", "owned"]]
    assert (report.applied, report.active_generation) == (True, 1)
    assert ids(one.list()) == ["host", "kept", "owned"]


def test_a_sink_that_raises_changes_nothing() -> None:
    """Publication stands, and the other conflicts are told all the same."""
    told: list[Diagnostic] = []

    def fail(diagnostic: Diagnostic) -> None:
        told.append(diagnostic)
        raise RuntimeError("sink")

    one = RegistrationTable(hosts=[emitting("a"), emitting("b")], outlet=DiagnosticOutlet(fail))
    assert replaced(one, 1, "a", "b", "c").applied
    one.register_hook(emitting("c"))
    assert (len(told), ids(one.list())) == (3, ["a", "b", "c"])


def test_preparing_runs_no_registration_and_no_sink() -> None:
    """Neither preparing nor publishing evaluates anything or tells anybody."""
    told: list[Diagnostic] = []
    ran: list[str] = []
    noisy = Registration("host", "d", ("before_tool",), evaluate=lambda *_: ran.append("ran") or ())  # type: ignore[func-returns-value]
    one = table("host", told=told)
    waiting = one.prepare_replacement(OWNER, 1, [noisy])
    assert isinstance(waiting, Replacement)
    waiting.publish()
    assert (told, ran) == ([], [])


def test_a_registration_that_cannot_be_evaluated_is_misuse_and_changes_nothing() -> None:
    """Every way in refuses it with all its issues."""
    one = table("host")
    replaced(one, 1, "a")
    wrong = Registration("wrong", "d", ())
    with pytest.raises(MisuseError, match=r"wrong\.hooks: .*; wrong\.evaluate: "):
        one.register_hook(wrong)
    with pytest.raises(MisuseError, match=r"wrong\.hooks"):
        one.replace_registrations(OWNER, 2, [emitting("b"), wrong])
    with pytest.raises(MisuseError, match=r"wrong\.hooks"):
        RegistrationTable(hosts=[wrong])
    assert (ids(one.list()), one.owned_generation(OWNER)) == (["host", "a"], 1)


def test_candidates_follow_each_publication() -> None:
    """What matches is what is live, and a captured list stays as it was."""
    one = table("host")
    captured = one.candidates("before_tool", "read").registrations
    replaced(one, 1, "a")
    assert ids(captured) == ["host"]
    assert ids(one.candidates("before_tool", "read").registrations) == ["host", "a"]


def test_writers_on_many_threads_lose_nothing() -> None:
    """Every host that any thread appended is there once, and each lookup meanwhile sees one generation whole."""
    one = table()
    torn: list[list[str]] = []
    done = threading.Event()

    def append(writer: int) -> None:
        for number in range(40):
            one.register_hook(emitting(f"host-{writer}-{number}"))

    def replace() -> None:
        for generation in range(1, 80):
            replaced(one, generation, f"{generation}/a", f"{generation}/b", f"{generation}/c")

    def read() -> None:
        while not done.is_set():
            owned = [one_id for one_id in ids(one.candidates("before_tool", "t").registrations) if "/" in one_id]
            if len({one_id.split("/")[0] for one_id in owned}) > 1 or len(owned) not in (0, 3):
                torn.append(owned)

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=append, args=(number,)) for number in range(3)]
    writers += [threading.Thread(target=replace), threading.Thread(target=replace)]
    reader.start()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(20)
    done.set()
    reader.join(20)
    hosts = [one_id for one_id in ids(one.list()) if one_id.startswith("host")]
    assert torn == []
    assert sorted(hosts) == sorted({f"host-{writer}-{number}" for writer in range(3) for number in range(40)})
    assert one.owned_generation(OWNER) == 79


def test_of_prepared_replacements_one_thread_alone_publishes() -> None:
    """Eight threads with replacements of one state: exactly one is published."""
    one = table("host")
    waiting = [prepared(one, number, f"owned-{number}") for number in range(1, 9)]
    outcomes: list[bool] = []
    barrier = threading.Barrier(8)

    def publish(replacement: Replacement) -> None:
        barrier.wait(10)
        outcomes.append(replacement.publish_if_current())

    threads = [threading.Thread(target=publish, args=(replacement,)) for replacement in waiting]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert sorted(outcomes) == [False] * 7 + [True]
    assert ids(one.list()) == ["host", f"owned-{one.owned_generation(OWNER)}"]
