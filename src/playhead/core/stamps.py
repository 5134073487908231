"""The projection ``stamps``: which versions and parameters a run stood under, and since when.

A divergence between two runs is put down to the stamp that changed (design: "Stamps recorded on
a run"). The stamp of a run is what ``run.started`` says besides its id, and each ``run.stamped``
after it replaces the parts that it names. The stamp of a call is the model and the parameters of
its ``model.requested``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from playhead.core.encode import fast_bytes
from playhead.core.model import JSON, Event
from playhead.core.persistent import Index, Vector, freeze, thaw
from playhead.errors import ValueRefused

MAX_PARTS: Final = 64
"""Parts of a run's stamp; a new part beyond them is passed over."""
MAX_CHANGES: Final = 256
"""Changes of the run's stamp that are kept, the first ones; later ones are counted."""
MAX_MODELS: Final = 64
"""Different stamps of calls that are kept, the first ones; calls under others are counted."""

ABSENT: Final[JSON] = MappingProxyType({"$playhead": "absent"})
"""What stands in a `StampDiff` for a part that one side does not have."""

_NOT_STAMPED: Final = frozenset(("uid", "call_id", "messages", "prompt", "tools", "input", "name"))
_EMPTY: Mapping[str, JSON] = MappingProxyType({})


class StampDiff(NamedTuple):
    """One difference: ``path`` is a JSON pointer, ``a`` and ``b`` the frozen values there."""

    path: str
    a: JSON
    b: JSON

    def to_dict(self) -> dict[str, JSON]:
        """Plain JSON values."""
        return {"path": self.path, "a": thaw(self.a), "b": thaw(self.b)}


def compare_stamps(a: Mapping[str, JSON], b: Mapping[str, JSON]) -> tuple[StampDiff, ...]:
    """Every difference between two stamps, ordered by path.

    Objects are compared part by part, everything else whole and by its canonical bytes: ``1``
    and ``1.0`` differ, ``true`` and ``1`` too. `ABSENT` stands for a part that is not there,
    which is another thing than null.

    Raises:
        ValueRefused: a value without a JSON form.
    """
    return tuple(_differences("", freeze(thaw(a)), freeze(thaw(b))))


def _differences(path: str, a: JSON, b: JSON) -> Iterator[StampDiff]:
    if a is b:
        return
    if isinstance(a, MappingProxyType) and isinstance(b, MappingProxyType):
        for key in sorted({*a, *b}):
            step = key.replace("~", "~0").replace("/", "~1")
            yield from _differences(f"{path}/{step}", a.get(key, ABSENT), b.get(key, ABSENT))
    elif fast_bytes(thaw(a)) != fast_bytes(thaw(b)):
        yield StampDiff(path, a, b)


def run_stamp(event: Event) -> Mapping[str, JSON] | None:
    """What a ``run.started`` or ``run.stamped`` says about the run; None for every other event."""
    if event.type == "run.started":
        return MappingProxyType(
            {key: freeze(v) for key, v in event.payload.items() if key not in _NOT_STAMPED}
        )
    if event.type == "run.stamped":
        stamp = freeze(event.payload.get("stamp"))
        return stamp if isinstance(stamp, MappingProxyType) else None
    return None


def call_stamp(event: Event) -> Mapping[str, JSON] | None:
    """What a ``model.requested`` was asked under: model, provider, transport, sampling and the
    other parameters as they were sent, without what is asked; None for every other event."""
    if event.type != "model.requested":
        return None
    found = {key: freeze(v) for key, v in event.payload.items() if key not in _NOT_STAMPED}
    return MappingProxyType({**found, "model": freeze(event.model)})


class Change(NamedTuple):
    """One part of the run's stamp that became another."""

    sequence_number: int
    diff: StampDiff


class ModelStamp(NamedTuple):
    """A stamp of calls, with the first and the last event under it and their number."""

    stamp: Mapping[str, JSON]
    first: int
    last: int
    calls: int


_NO_CHANGES: Vector[Change] = Vector()
_NO_MODELS: Vector[ModelStamp] = Vector()
_NO_INDEX = Index()


class Stamped(NamedTuple):
    """The run's stamp, the event that gave it, what changed since the first one; the calls'."""

    stamp: Mapping[str, JSON] = _EMPTY
    at: int | None = None
    changes: Vector[Change] = _NO_CHANGES
    dropped: int = 0
    models: Vector[ModelStamp] = _NO_MODELS
    model_of: Index = _NO_INDEX
    unkept_calls: int = 0


class Stamps:
    """Under which stamps a run and its calls stood."""

    key = "stamps"
    version = 1
    event_types = frozenset(("run.started", "run.stamped", "model.requested"))

    def init(self) -> Stamped:
        return Stamped()

    def apply(self, state: object, event: Event) -> object:
        assert isinstance(state, Stamped)
        stamp = run_stamp(event)
        if stamp is not None:
            return _stamped(state, event.seq + 1, stamp)
        called = call_stamp(event)
        return state if called is None else _called(state, event.seq + 1, called)

    def view(self, state: object) -> JSON:
        """``stamp``, the ``sequence_number`` it is from, its ``changes``, and the ``models``."""
        assert isinstance(state, Stamped)
        return {
            "stamp": thaw(state.stamp),
            "sequence_number": state.at,
            "changes": [
                {"sequence_number": one.sequence_number, **one.diff.to_dict()}
                for one in state.changes
            ],
            "dropped_changes": state.dropped,
            "models": [{**one._asdict(), "stamp": thaw(one.stamp)} for one in state.models],
            "unkept_calls": state.unkept_calls,
        }

    def dump(self, state: object) -> JSON:
        assert isinstance(state, Stamped)
        return [
            thaw(state.stamp),
            state.at,
            [[at, diff.path, thaw(diff.a), thaw(diff.b)] for at, diff in state.changes],
            state.dropped,
            [[thaw(one.stamp), *one[1:]] for one in state.models],
            state.unkept_calls,
        ]

    def load(self, dumped: JSON) -> Stamped:
        match dumped:
            case [dict(stamp), int() | None as at, list(changes), int(out), list(models), int(un)]:
                made = [_load_model(one) for one in models]
                return Stamped(
                    _parts(stamp),
                    at,
                    Vector.of(map(_load_change, changes)),
                    out,
                    Vector.of(made),
                    Index.of([_name(one.stamp) for one in made]),
                    un,
                )
        raise ValueRefused("no dump of stamps")


def _parts(stamp: dict[str, JSON]) -> Mapping[str, JSON]:
    return MappingProxyType({key: freeze(value) for key, value in stamp.items()})


def _load_change(row: JSON) -> Change:
    match row:
        case [int(at), str(path), a, b]:
            return Change(at, StampDiff(path, freeze(a), freeze(b)))
    raise ValueRefused("no dump of a change of a stamp")


def _load_model(row: JSON) -> ModelStamp:
    match row:
        case [dict(stamp), int(first), int(last), int(calls)]:
            return ModelStamp(_parts(stamp), first, last, calls)
    raise ValueRefused("no dump of the stamp of a call")


def _name(stamp: Mapping[str, JSON]) -> str:
    return fast_bytes(thaw(stamp)).decode("ascii")


def _stamped(state: Stamped, number: int, stamp: Mapping[str, JSON]) -> Stamped:
    merged = {**state.stamp}
    for key, value in stamp.items():
        if key in merged or len(merged) < MAX_PARTS:
            merged[key] = value
    after = MappingProxyType(merged)
    if state.at is None:
        return state._replace(stamp=after, at=number)
    changes, dropped = state.changes, state.dropped
    for diff in _differences("", state.stamp, after):
        if len(changes) < MAX_CHANGES:
            changes = changes.append(Change(number, diff))
        else:
            dropped += 1
    return state._replace(stamp=after, at=number, changes=changes, dropped=dropped)


def _called(state: Stamped, number: int, stamp: Mapping[str, JSON]) -> Stamped:
    name = _name(stamp)
    at = state.model_of.get(name)
    if at is not None:
        old = state.models[at]
        new = old._replace(last=number, calls=old.calls + 1)
        return state._replace(models=state.models.replace(at, new))
    if len(state.models) >= MAX_MODELS:
        return state._replace(unkept_calls=state.unkept_calls + 1)
    models = state.models.append(ModelStamp(stamp, number, number, 1))
    return state._replace(models=models, model_of=state.model_of.add(name))
