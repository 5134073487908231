"""Every error that playhead raises, in one tree.

    PlayheadError                 exit  code
    |- UsageError                  2    usage            the words are off
    |  |- InvalidId                2    invalid-id       an id that could become a path
    |  |- NotFound                 2    not-found        the run, step or file is not there
    |  `- ReplayArgumentError      2    replay-argument  an argument of replay; names its field
    |- Refused                     4    refused          hostile or unreadable input
    |  |- TooLarge                 4    too-large        over a limit of size, count or depth
    |  `- Unreadable               4    unreadable       permissions, a directory, a device
    |- JournalError                1    journal          the chain on disk does not let us go on
    |  |- JournalLocked            1    journal-locked   another writer owns the run
    |  |- JournalClosed            1    journal-closed   append after close
    |  |- JournalBroken            1    journal-broken   recovery found a fault before the tail
    |  |- WriteFailed              1    write-failed     the disk did not take the row
    |  |- HeadConflict             1    head-conflict    the chain grew under a writer
    |  `- EventConflict            1    event-conflict   an event id is taken by another event
    |- StoreError                  1    store            a database did not do what was asked
    |- ReplayError                 1    replay           carries chat_id and tenant_id
    |  |- ReplayDivergenceError    1    replay-divergence        the record contradicts itself
    |  |  `- ReplayCacheMissError  1    replay-cache-miss        key, mode, sequence_number, reason
    |  |- ReplayUnknownEventError  1    replay-unknown-event     a row without an event type
    |  |- ReplayTenantMismatchError 2   replay-tenant-mismatch   a row of somebody else
    |  |- ReplayClosedError        2    replay-closed            a closed handle was asked to move
    |  `- ReplayTurnNotFoundError  2    replay-turn-not-found    no such turn in what is left
    |- RecordError                 1    record           recording failed and on_error="raise"
    |- ValueRefused                1    value-refused    a value the raw append may not hold
    |- BlobError                   1    blob             a blob is missing or is not its digest
    |- SignatureError              1    signature        a signed note does not hold
    `- CheckFailed                 1    check-failed     a check failed; findings say where

Each error says what happened, where, and what to do about it. ``exit_code`` and
``code`` are stable: scripts may rely on them (docs/reference/exit-status.md). All pickle.

Outside the tree stands ``ReplayNotImplementedError``, a builtin ``NotImplementedError``: a gap in
playhead is no outcome of a replay, and ``except ReplayError`` does not catch it.
"""

from playhead.errors.base import (
    NOWHERE,
    BlobError,
    CheckFailed,
    EventConflict,
    HeadConflict,
    InvalidId,
    JournalBroken,
    JournalClosed,
    JournalError,
    JournalLocked,
    NotFound,
    Place,
    PlayheadError,
    RecordError,
    Refused,
    SignatureError,
    StoreError,
    TooLarge,
    Unreadable,
    UsageError,
    ValueRefused,
    WriteFailed,
)
from playhead.errors.replay import (
    ReplayArgumentError,
    ReplayCacheMissError,
    ReplayClosedError,
    ReplayDivergenceError,
    ReplayError,
    ReplayNotImplementedError,
    ReplayTenantMismatchError,
    ReplayTurnNotFoundError,
    ReplayUnknownEventError,
)

__all__ = [
    "NOWHERE",
    "BlobError",
    "CheckFailed",
    "EventConflict",
    "HeadConflict",
    "InvalidId",
    "JournalBroken",
    "JournalClosed",
    "JournalError",
    "JournalLocked",
    "NotFound",
    "Place",
    "PlayheadError",
    "RecordError",
    "Refused",
    "ReplayArgumentError",
    "ReplayCacheMissError",
    "ReplayClosedError",
    "ReplayDivergenceError",
    "ReplayError",
    "ReplayNotImplementedError",
    "ReplayTenantMismatchError",
    "ReplayTurnNotFoundError",
    "ReplayUnknownEventError",
    "SignatureError",
    "StoreError",
    "TooLarge",
    "Unreadable",
    "UsageError",
    "ValueRefused",
    "WriteFailed",
]
