"""Verify what a word means in any store: a run of a tenant, or a file that lies by itself.

A file (a journal, a receipt, a proof) belongs to nobody, and a verdict shows no value of it; a
run is looked up as its tenant's, and another tenant's run is not there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

from playhead.core.model import Report
from playhead.core.sign import PublicKey
from playhead.errors import NotFound
from playhead.store.dirstore import DirStore
from playhead.store.keys import KeyRing, state_dir
from playhead.store.stores import ChainRef, Store
from playhead.verifier.api import Watch, verify
from playhead.verifier.missing import missing_run
from playhead.verifier.stored import verify_stored


def is_file(word: str) -> bool:
    """True when ``word`` is a file that is verified by itself, of whatever tenant."""
    return "\0" not in word and (os.path.isfile(word) or os.path.islink(word))


def verify_named(
    store: Store,
    tenant_id: str,
    word: str,
    *,
    head: str | None = None,
    keys: Sequence[PublicKey] = (),
    strict: bool = False,
    progress: Watch | None = None,
) -> Report:
    """The verdict over the tenant's run that ``word`` means (id, prefix, ``@last``, a path in a
    directory). A run of a directory of which only the signed head is left is a failed one.

    Args:
        head, keys, strict, progress: as in `playhead.verifier.api.verify`.

    Raises:
        NotFound, UsageError: nothing of this tenant fits, or several runs do; ``head`` is none.
        Unreadable, Refused, StoreError: it cannot be read.
    """
    try:
        ref = store.find_run(tenant_id, word)
    except NotFound:
        gone = None
        if isinstance(store, DirStore):
            gone = missing_run(store.root, word, KeyRing(state_dir()))
        if gone is None:
            raise
        return gone
    report = verify_chain(store, ref, head=head, keys=keys, strict=strict, progress=progress)
    return report if word == "@last" or store.folder(ref) is None else replace(report, target=word)


def verify_chain(
    store: Store,
    ref: ChainRef,
    *,
    head: str | None = None,
    keys: Sequence[PublicKey] = (),
    strict: bool = False,
    progress: Watch | None = None,
) -> Report:
    """The verdict over one chain: of a journal over every byte of its file, half a row at its end
    included; in a database over the rows that are committed now.

    Raises:
        NotFound, Unreadable, Refused, StoreError: no such chain. UsageError: ``head`` is none.
    """
    folder = store.folder(ref)
    if folder is not None:
        report = verify(folder, head=head, keys=keys, strict=strict, progress=progress)
        return replace(report, target=ref.run_id)
    return verify_stored(
        store,
        ref,
        expected_head=head,
        keys=keys,
        strict=strict,
        progress=None if progress is None else _of(progress, store.tip(ref).length),
    )


def _of(progress: Watch, total: int) -> Callable[[int], None]:
    return lambda done: progress(min(done, total), total)
