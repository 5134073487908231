"""Signed notes and checkpoint bodies: what is read, and what is refused."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.core.note import (
    Checkpoint,
    NoteSignature,
    SignedNote,
    format_note,
    parse_checkpoint,
    parse_note,
)
from playhead.errors import SignatureError

ROOT = bytes(range(32))
SIG = base64.b64encode(b"HASHsignature").decode()
LINE = f"\u2014 example.com/log {SIG}\n"
LINES = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(LINES, st.integers(0, 2**60), st.binary(min_size=32, max_size=32), st.lists(LINES))
def test_a_checkpoint_reads_back(origin: str, size: int, root: bytes, more: list[str]) -> None:
    checkpoint = Checkpoint(origin, size, root, tuple(more))
    assert parse_checkpoint(checkpoint.to_body()) == checkpoint


def test_the_checkpoint_of_the_specification() -> None:
    body = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    checkpoint = parse_checkpoint(body)
    assert (checkpoint.origin, checkpoint.size) == ("example.com/behind-the-sofa", 20852163)
    assert checkpoint.root.hex().startswith("0ac5186a91863e8e")
    assert checkpoint.to_body() == body


GOOD = Checkpoint("o", 7, ROOT, ("ext",)).to_body()


@pytest.mark.parametrize(
    "body",
    [
        "",
        GOOD[:-1],
        GOOD + "\n",
        "o\n7\n",
        GOOD.replace("\n7\n", "\n07\n"),
        GOOD.replace("\n7\n", "\n-7\n"),
        GOOD.replace("\n7\n", "\n+7\n"),
        GOOD.replace("\n7\n", "\n\u0667\n"),
        GOOD.replace("\n7\n", "\n7 \n"),
        GOOD.replace("\n7\n", "\n" + "7" * 5000 + "\n"),
        GOOD.replace("o\n", "\n", 1),
        GOOD.replace("o\n", "o\r\n", 1),
        GOOD.replace("Hh8=", "Hh8"),
        GOOD.replace("Hh8=", "Hh9="),
        GOOD.replace("Hh8=", "Hh8=AA=="),
        GOOD.replace("AAEC", "AA C"),
        GOOD.replace("ext", "e\x00xt"),
    ],
)
def test_any_other_checkpoint_is_refused(body: str) -> None:
    assert body != GOOD
    with pytest.raises(SignatureError):
        parse_checkpoint(body)


@pytest.mark.parametrize(
    "values",
    [("", 1, ROOT), ("o", -1, ROOT), ("o", 1, b"x"), ("o\n", 1, ROOT), ("o", 1, ROOT, ("",))],
)
def test_a_checkpoint_that_has_no_form_is_not_made(values: tuple[object, ...]) -> None:
    with pytest.raises(SignatureError):
        Checkpoint(*values)  # type: ignore[arg-type]


def test_the_last_blank_line_splits_and_unknown_lines_are_kept() -> None:
    note = parse_note(f"a\n\nb\n\n{LINE}\u2014 grease AAAAAAA=\n")
    assert note == SignedNote(
        "a\n\nb\n",
        (
            NoteSignature("example.com/log", b"HASH", b"signature"),
            NoteSignature("grease", b"\0\0\0\0", b"\0"),
        ),
    )


def test_bytes_and_text_read_alike() -> None:
    text = f"\u00e8 sera\n\n{LINE}"
    assert parse_note(text) == parse_note(text.encode())


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n",
        "text\n",
        f"text\n{LINE}",
        "text\n\n",
        f"text\n\n{LINE[:-1]}",
        f"text\n\n{LINE}\n",
        f"text\n\n{LINE}no dash\n",
        f"text\n\n- name {SIG}\n",
        f"text\n\n\u2014  {SIG}\n",
        f"text\n\n\u2014 {SIG}\n",
        f"text\n\n\u2014 a+b {SIG}\n",
        f"text\n\n\u2014 a\u00a0b {SIG}\n",
        f"text\n\n\u2014 name {SIG} \n",
        f"text\n\n\u2014 name  {SIG}\n",
        "text\n\n\u2014 name !!!!\n",
        "text\n\n\u2014 name SEFTSA==\n",
        f"te\rxt\n\n{LINE}",
        f"te\txt\n\n{LINE}",
        f"\ud800\n\n{LINE}",
        b"\xff\n\n" + LINE.encode(),
        "text\n\n" + LINE * 101,
        "x" * 65536 + f"\n\n{LINE}",
    ],
)
def test_a_malformed_note_is_refused(note: str | bytes) -> None:
    with pytest.raises(SignatureError, match="malformed"):
        parse_note(note)


def test_a_hundred_signatures_are_read() -> None:
    assert len(parse_note("text\n\n" + LINE * 100).signatures) == 100


@given(st.text(), st.lists(st.tuples(st.text(), st.binary(max_size=6), st.binary(max_size=4))))
def test_a_written_note_reads_back_or_is_not_written(
    text: str, signatures: list[tuple[str, bytes, bytes]]
) -> None:
    try:
        note = format_note(text, signatures)
    except SignatureError:
        return
    assert parse_note(note).text == text
    assert [(s.name, s.key_hash, s.signature) for s in parse_note(note).signatures] == signatures


def test_format_note_is_the_c2sp_form() -> None:
    assert format_note("t\n", [("example.com/log", b"HASH", b"signature")]) == f"t\n\n{LINE}"
