"""The base of the tree, and every error that is not of replay (drawn in `playhead.errors`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was seen: file, 1-based line, byte offset of the line, 0-based step."""

    file: str | None = None
    line: int | None = None
    byte: int | None = None
    step: int | None = None

    def __str__(self) -> str:
        parts = [self.file] if self.file else []
        parts += [
            f"{word} {value}"
            for word, value in (("line", self.line), ("byte", self.byte), ("step", self.step))
            if value is not None
        ]
        return ", ".join(parts)

    def to_dict(self) -> dict[str, str | int]:
        """The parts that are known, for ``--json``."""
        pairs = (("file", self.file), ("line", self.line), ("byte", self.byte), ("step", self.step))
        return {k: v for k, v in pairs if v is not None}


NOWHERE = Place()


class PlayheadError(Exception):
    """Base of the tree: one line of what, where and remedy, and an exit status."""

    exit_code: ClassVar[int] = 1
    code: ClassVar[str] = "error"
    default_remedy: ClassVar[str] = ""

    def __init__(self, what: str, *, place: Place = NOWHERE, remedy: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.place = place
        self.remedy = self.default_remedy if remedy is None else remedy

    def __str__(self) -> str:
        where = str(self.place)
        text = f"{where}: {self.what}" if where else self.what
        return f"{text}. {self.remedy}" if self.remedy else text

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.what, self.place, self.remedy, dict(self.__dict__)))

    def to_dict(self) -> dict[str, object]:
        """The error as one JSON object with a stable ``code``."""
        return {
            "error": True,
            "code": self.code,
            "what": self.what,
            "where": self.place.to_dict(),
            "remedy": self.remedy,
        }


def _rebuild(
    cls: type[PlayheadError], what: str, place: Place, remedy: str, state: dict[str, object]
) -> PlayheadError:
    error = cls.__new__(cls)
    Exception.__init__(error, what)
    error.__dict__.update(state)
    return error


class UsageError(PlayheadError):
    exit_code = 2
    code = "usage"


class InvalidId(UsageError):
    code = "invalid-id"
    default_remedy = "Use letters, digits, '.', '_' and '-', starting with a letter or digit"


class NotFound(UsageError):
    code = "not-found"
    default_remedy = "'playhead ls' lists the runs under this root"


class Refused(PlayheadError):
    exit_code = 4
    code = "refused"


class TooLarge(Refused):
    code = "too-large"


class Unreadable(Refused):
    code = "unreadable"


class JournalError(PlayheadError):
    code = "journal"


class JournalLocked(JournalError):
    code = "journal-locked"

    def __init__(
        self, what: str, *, pid: int | None, place: Place = NOWHERE, remedy: str | None = None
    ) -> None:
        super().__init__(what, place=place, remedy=remedy)
        self.pid = pid


class JournalClosed(JournalError):
    code = "journal-closed"
    default_remedy = "Open the journal again to append to it"


class JournalBroken(JournalError):
    code = "journal-broken"
    default_remedy = (
        "Move the journal aside (rename it to 000000.jsonl.corrupt), keep it for a look with "
        "'playhead verify', and restore a copy that verifies or go on under another run id"
    )


class WriteFailed(JournalError):
    code = "write-failed"
    default_remedy = "Free space or repair the disk; what was written before is whole"


class HeadConflict(JournalError):
    """``expected_head`` is not the head, or another writer was first. Nothing was written."""

    code = "head-conflict"
    default_remedy = "Read the new rows, then append again with the head that is there now"

    def __init__(self, what: str, *, expected: str, actual: str) -> None:
        super().__init__(what)
        self.expected = expected
        self.actual = actual


class EventConflict(JournalError):
    """The chain holds another event under this ``event_id``. Nothing was written."""

    code = "event-conflict"
    default_remedy = "Give each event an id of its own; repeat an event only as it was"


class StoreError(PlayheadError):
    code = "store"
    default_remedy = "Check that the database is there and yours ('playhead store init' makes it)"


class RecordError(PlayheadError):
    code = "record"
    default_remedy = "Free space or repair the disk, or record with on_error='warn'"


class ValueRefused(PlayheadError):
    code = "value-refused"
    default_remedy = "Record it through playhead.record(), which turns such values into marked ones"


class BlobError(PlayheadError):
    code = "blob"


class SignatureError(PlayheadError):
    code = "signature"


class CheckFailed(PlayheadError):
    code = "check-failed"
