"""Entries of a transcript into a chain, and what is taken out of them on the way."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping

import orjson

from playhead.convert.deltas import Deltas
from playhead.core.events import Draft
from playhead.core.model import JSON, Finding
from playhead.core.redact import Policy, Redactor
from playhead.errors import Place
from playhead.formats.transcript import Entry, Transcript
from playhead.recorder.writer import RunWriter

HEAVY = 4 * 1024 * 1024
"""Bytes of a value's JSON above which it leaves the row."""
Progress = Callable[[str, int, int], None]
"""Told the file, how many of its entries are written, and how many there are."""
_TELL_EVERY = 100
MAX_NAME = 1000
"""Characters of a name or an id in an envelope."""


class Scrubber:
    """Removes secrets from content, or, without ``redact``, nothing.

    It works before the writer does: a large value must be clean before it becomes a blob.
    """

    def __init__(self, redact: bool) -> None:
        self.policy = Policy(content=True) if redact else Policy()
        self.redactor = Redactor(self.policy)
        self.active = redact

    def value(self, value: JSON) -> JSON:
        return self.redactor.value(value)[0] if self.active else value

    def text(self, text: str) -> str:
        return self.redactor.text(text)[0] if self.active else text

    def mapping(self, value: Mapping[str, JSON]) -> dict[str, JSON]:
        clean = self.value(dict(value))
        assert isinstance(clean, dict)
        return clean

    def finding(self, finding: Finding) -> Finding:
        """A finding quotes names from the source."""
        place = finding.place
        file = None if place.file is None else self.text(place.file)
        place = Place(file, place.line, place.byte, place.step)
        return dataclasses.replace(finding, what=self.text(finding.what), place=place)


def write_entries(
    writer: RunWriter,
    t: Transcript,
    scrub: Scrubber,
    first: Draft,
    tell: Callable[[int, int], None] | None = None,
) -> str:
    """Write ``first``, every entry and the end of the run; returns the head.

    ``tell`` hears, every hundred entries and at the end, how many of how many are written.

    An entry without a time takes the time of the one before it: file order is the order of
    events, and a time is data (case C49).

    Raises:
        WriteFailed: the disk refused. The journal is closed; the run has no end.
    """
    deltas = Deltas(writer.blobs.put, scrub.redactor)
    heavy = sum(file.size for file in t.files) > HEAVY
    last = next((entry.at for entry in t.entries if entry.at is not None), None)
    try:
        writer.emit(dataclasses.replace(first, payload=scrub.mapping(first.payload)), at=last)
        for done, entry in enumerate(t.entries):
            if tell is not None and done % _TELL_EVERY == 0:
                tell(done, len(t.entries))
            last = entry.at or last
            prompt: str | None = None
            blobs: tuple[str, ...] = ()
            if entry.messages is not None:
                prompt, blobs = deltas.encode(writer.journal.next_seq, entry.messages)
            payload = payload_of(entry, scrub)
            draft = Draft(
                type=entry.type,
                payload=_light(payload) if heavy else payload,
                name=_clean(entry.name, scrub),
                model=_clean(entry.model, scrub),
                prompt=prompt,
                turn_id=_clean(entry.turn_id, scrub),
                subagent_run_id=_clean(entry.subagent_run_id, scrub),
                blobs=blobs,
            )
            seq = writer.emit(draft, at=last)
            if entry.type == "model.responded":
                deltas.answered(seq, entry.payload.get("result"))
        head = writer.close(t.status, at=last)
    except BaseException:
        writer.release()
        raise
    if tell is not None:
        tell(len(t.entries), len(t.entries))
    return head


def payload_of(entry: Entry, scrub: Scrubber) -> dict[str, JSON]:
    """The payload of an entry's event. It says where in the source it comes from; a redacted
    one without the row's digest, against which a guessed secret could be checked."""
    place: dict[str, JSON] = {
        "file": entry.source.file,
        "line": entry.source.line,
        "byte": entry.source.byte,
    }
    if not scrub.active:
        place["sha256"] = entry.source.sha256
    payload = scrub.mapping(entry.payload)
    payload["source"] = place
    return payload


def _clean(text: str | None, scrub: Scrubber) -> str | None:
    return None if text is None else clean(text, scrub)


def clean(text: str, scrub: Scrubber) -> str:
    """A name or an id from a source as an envelope may hold it: no lone surrogates (C06), and
    not longer than a name can sensibly be. The payload keeps it as it was."""
    text = scrub.text(text)[:MAX_NAME]
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _light(payload: dict[str, JSON]) -> dict[str, JSON]:
    """A row has a limit; a value over 4 MiB is given as JSON text, which becomes a blob."""
    kept: dict[str, JSON] = {}
    for key, value in payload.items():
        if _surely_light(value):
            kept[key] = value
            continue
        try:
            text = json.dumps(value, separators=(",", ":"))
        except (ValueError, RecursionError):
            text = ""  # nested too deeply: the writer keeps such a value as text by itself
        kept[key] = {"json": text} if len(text) > HEAVY else value
    return kept


def _surely_light(value: JSON) -> bool:
    """A quick look: JSON in ASCII has at most three times the bytes that UTF-8 needs."""
    try:
        return len(orjson.dumps(value)) * 3 <= HEAVY
    except TypeError:  # a lone surrogate or a deep value: `_light` looks closely
        return False
