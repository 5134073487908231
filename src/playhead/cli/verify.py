"""``playhead verify``: the verdict over runs and journals."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from playhead.cli.reports import exit_status, show_report, worst
from playhead.cli.shared import (
    epilog,
    progress,
    say,
    show_json,
    status_table,
    target_options,
    tenant_of,
)

if TYPE_CHECKING:
    from playhead.core.model import Report
    from playhead.core.sign import PublicKey
    from playhead.errors import PlayheadError
    from playhead.store.stores import Store

STATUS = status_table(0, 1, 2, 3, 4, s0="verified, or unproven without --strict")


@click.command("verify", epilog=epilog("playhead verify @last", status=STATUS))
@click.argument("targets", metavar="TARGET...", nargs=-1, required=True)
@click.option("--head", metavar="HEX", help="The head that you expect, from elsewhere.")
@click.option("--key", "keys", metavar="PUB", multiple=True, help="Trust this key: file or vkey.")
@click.option("--strict", is_flag=True, help="Oddities are errors; unproven is status 3.")
@target_options
def command(
    root: str | None,
    tenant: str | None,
    as_json: bool,
    targets: tuple[str, ...],
    head: str | None,
    keys: tuple[str, ...],
    strict: bool,
) -> int:
    """Prove that nobody changed a run: a run, a journal directory, a journal file or a proof.

    The verdict is 'verified' when a trusted head covers every step, 'unproven' when the chain
    holds and nothing outside it confirms its end, and 'failed' when something does not fit.
    A run is looked up as its --tenant's; a file needs no tenant, since a verdict shows no values.
    With several targets the status is the first of 1, 4, 2, 3 that one of them has.
    """
    from playhead.cli.pubkeys import public_key
    from playhead.errors import PlayheadError, UsageError

    if head is not None and len(targets) > 1:
        raise UsageError("--head belongs to one target", remedy="Verify them one by one")
    known = [public_key(word) for word in keys]
    statuses: list[int] = []
    documents: list[dict[str, object]] = []
    home = Home(root, tenant)
    for target in targets:
        try:
            report = _one(target, home, head, known, strict)
        except PlayheadError as error:
            if len(targets) == 1:
                raise
            statuses.append(error.exit_code)
            documents.append({"target": target, **error.to_dict()})
            if not as_json:
                _show_refusal(target, error)
            continue
        statuses.append(exit_status(report, strict))
        documents.append(report.to_dict())
        if not as_json:
            show_report(report)
    if as_json:
        show_json({"reports": documents, "status": worst(statuses)})
    return worst(statuses)


class Home:
    """The store and the tenant, asked for when the first target needs them: a file needs neither.

    Raises:
        UsageError: a tenant that is given is blank.
    """

    def __init__(self, root: str | None, tenant: str | None) -> None:
        self._root = root
        self._tenant = tenant
        self._found: tuple[Store, str] | None = None
        if tenant is not None or "PLAYHEAD_TENANT" in os.environ:
            tenant_of(root, tenant)

    def found(self) -> tuple[Store, str]:
        """The open store, and the tenant."""
        from playhead.store.urls import open_store

        if self._found is None:
            tenant_id = tenant_of(self._root, self._tenant)
            store = open_store(self._root, create=False)
            click.get_current_context().call_on_close(store.close)
            self._found = store, tenant_id
        return self._found


def _one(target: str, home: Home, head: str | None, keys: list[PublicKey], strict: bool) -> Report:
    from playhead.errors import NotFound
    from playhead.verifier.api import verify
    from playhead.verifier.target import is_file, verify_named

    if not target or "\0" in target:
        raise NotFound(f"nothing at {target!r:.80}")
    with progress("verifying") as watch:
        if is_file(target):
            return verify(target, head=head, keys=keys, strict=strict, progress=watch)
        store, tenant_id = home.found()
        return verify_named(
            store, tenant_id, target, head=head, keys=keys, strict=strict, progress=watch
        )


def _show_refusal(target: str, error: PlayheadError) -> None:
    from playhead.replay.text import visible

    say(f"{'refused' if error.exit_code == 4 else 'not there'}  {visible(target)}")
    say(f"    {visible(str(error))}")
