"""wire.sse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpose.wire.sse import EVENT_BYTES_MAX, EventTooLong, SseEvent, SseReader, split, split_from


def read_all(chunks: list[bytes]) -> tuple[list[SseEvent], bytes]:
    """All events of a stream cut as given, and what is left of an unfinished one."""
    reader = SseReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    last, rest = reader.finish()
    return events + last, rest


def reference(stream: bytes) -> list[tuple[str, str]]:
    """The WHATWG algorithm, line by line: name and data of each event that is dispatched."""
    text = stream.decode("utf-8", "replace")
    text = text.removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    name = ""
    data: list[str] = []
    found: list[tuple[str, str]] = []
    for line in lines[:-1]:
        if not line:
            if data:
                found.append((name or "message", "\n".join(data)))
            name, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "event":
            name = value
        if field == "data":
            data.append(value)
    return found


def seen(events: list[SseEvent]) -> list[tuple[str, str]]:
    """Name and data of each event that has data."""
    return [(event.name, event.data.decode("utf-8", "replace")) for event in events if event.data is not None]


def as_lf(data: bytes) -> bytes:
    """The same with every line end as LF."""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


line_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])
line_texts = st.sampled_from(
    [
        b"data: {}",
        b"data:x",
        b"data",
        b"data: \xf0\x9f\x98\x80",
        b"event: e",
        b"event:",
        b": note",
        b"id: 1",
        b"",
        b"x",
        b"datax: 1",
        b"\xef\xbb\xbfdata: marked",
        b"\xef\xbb\xbfevent: marked",
        b"\xef\xbb\xbf",
    ]
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """A stream of odd lines, every one with a line end of its own."""
    mark = draw(st.sampled_from([b"", b"\xef\xbb\xbf"]))
    return mark + b"".join(draw(st.lists(st.tuples(line_texts, line_ends).map(b"".join), max_size=14)))


@given(streams(), st.data())
def test_reads_as_the_text_says_wherever_it_is_cut(stream: bytes, data: st.DataObject) -> None:
    """Any cut gives the same events as the reference, and all bytes come out again in order."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]

    events, rest = read_all(chunks)

    assert seen(events) == reference(stream)
    assert b"".join(event.raw for event in events) + rest == stream
    assert [event.raw for event in events] == [event.raw for event in read_all([stream])[0]]


def test_an_event_leaves_with_its_last_byte() -> None:
    """An event that ends in LF is there as soon as that byte is."""
    reader = SseReader()

    assert reader.feed(b"data: 1\r\n\r") == []
    assert [event.data for event in reader.feed(b"\n")] == [b"1"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"data: 1\n\n", b"data: {}\n\n"),
        (b"event: e\r\ndata:1\r\nid: 7\r\n\r\n", b"event: e\r\ndata: {}\r\nid: 7\r\n\r\n"),
        (b": c\ndata: 1\ndata: 2\n\n", b": c\ndata: {}\n\n"),
        (b"data: 1\n\xef\xbb\xbfdata: 2\n\n", b"data: {}\n\xef\xbb\xbfdata: 2\n\n"),
        (b"event: e\n\n", b"data: {}\nevent: e\n\n"),
        (b"data: 1\rdata: 2\n\n", b"data: {}\n\n"),
    ],
)
def test_new_data_keeps_all_other_lines(raw: bytes, expected: bytes) -> None:
    """Only the data lines change; comments, ids, names and line ends stay."""
    assert SseEvent(raw).with_data(b"{}").raw == expected


def test_the_mark_of_a_stream_stays_in_front() -> None:
    """The first event alone may have one, with data or without."""
    first = SseEvent(b"\xef\xbb\xbfdata: 1\n\n", opens=True)
    bare = SseEvent(b"\xef\xbb\xbfevent: e\n\n", opens=True)

    assert first.data == b"1"
    assert first.with_data(b"{}").raw == b"\xef\xbb\xbfdata: {}\n\n"
    assert bare.with_data(b"{}").raw == b"\xef\xbb\xbfdata: {}\nevent: e\n\n"
    assert SseEvent(first.raw).data is None


def test_a_built_event_is_read_back() -> None:
    """What `build` writes has the name and data it was given."""
    event = SseEvent.build("error", b'{"a":1}', b"\r\n")

    assert (event.name, event.data, event.newline) == ("error", b'{"a":1}', b"\r\n")
    assert SseEvent.build(None, b"1").raw == b"data: 1\n\n"
    assert SseEvent(b": only a note").newline == b"\n"


odd_data = st.lists(st.sampled_from([b"\n", b"\r\n", b"\r", b" ", b'{"a":', b"data: x", b":", b"1}", b"\x00"])).map(
    b"".join
)


@given(odd_data, line_ends, st.sampled_from([None, "error"]))
def test_whatever_is_built_is_read_back(data: bytes, newline: bytes, name: str | None) -> None:
    """Data of any number of lines is one event, and says the same with its line ends as LF."""
    events, rest = read_all([SseEvent.build(name, data, newline).raw])

    assert [(event.name, event.data) for event in events] == [(name or "message", as_lf(data))]
    assert rest == b""


@given(streams(), odd_data)
def test_whatever_an_event_is_given_is_read_back(stream: bytes, data: bytes) -> None:
    """Whichever lines and line ends an event has, with new data it is one event that says this data."""
    for event in (one for one in read_all([stream])[0] if one.data is not None):
        before = [] if event.opens else [b"data\n\n"]

        events, rest = read_all([*before, event.with_data(data).raw])

        assert [(one.name, one.data) for one in events[len(before) :]] == [(event.name, as_lf(data))]
        assert rest == b""


def test_an_event_without_end_is_not_waited_for_for_ever() -> None:
    """The limit on one event is an exception that says so."""
    reader = SseReader()
    reader.feed(b"data: ")

    with pytest.raises(EventTooLong, match="does not end"):
        reader.feed(b"x" * (EVENT_BYTES_MAX + 1))


@given(streams(), st.data())
def test_a_block_is_split_only_where_it_matters(stream: bytes, data: st.DataObject) -> None:
    """What stands before a position is one piece of whole events; the rest is split as ever."""
    reader = SseReader()
    block = reader.take(stream)
    position = data.draw(st.integers(0, len(block)))
    plain, events = split_from(block, position)

    assert plain + b"".join(event.raw for event in events) == block
    assert split(plain) + events == split(block)
    assert len(plain) <= position
