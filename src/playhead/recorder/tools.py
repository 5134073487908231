"""Tools on record: a decorator for plain, async and generator functions.

What the agent sees stays the same: the wrapped function returns the same object, raises the
same exception, yields, receives and closes as before.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from playhead.errors import UsageError
from playhead.recorder.calls import Effects, NotRecorded, ToolCall, bound_arguments
from playhead.recorder.context import current_run

if TYPE_CHECKING:
    from playhead.recorder.session import Recording

# Any: a decorator must take and give back functions of every signature.
F = TypeVar("F", bound=Callable[..., Any])
Begin = Callable[[tuple[object, ...], dict[str, object]], ToolCall | None]

_EFFECTS = ("pure", "read", "write")


@overload
def tool(fn: F, /) -> F: ...
@overload
def tool(*, effects: Effects = "write", name: str | None = None) -> Callable[[F], F]: ...
def tool(
    fn: F | None = None, /, *, effects: Effects = "write", name: str | None = None
) -> F | Callable[[F], F]:
    """Record every call of a function as a tool call of whatever run is current.

    Without a current run the function simply runs. ``effects`` says what a call does to the
    world: ``pure``, ``read`` or ``write`` (the default: fork and rerun never repeat it).
    """
    if fn is not None:
        return wrap(fn, current_run, effects, name)
    return lambda inner: wrap(inner, current_run, effects, name)


def wrap(fn: F, find: Callable[[], Recording | None], effects: Effects, name: str | None) -> F:
    """``fn`` with its calls on record in the run that ``find`` gives at call time.

    Raises:
        UsageError: an unknown effects class, or not a function.
    """
    if effects not in _EFFECTS:
        raise UsageError(f"effects={effects!r}", remedy="Use pure, read or write")
    if not callable(fn):
        raise UsageError(f"{fn!r:.60} is not a function", remedy="Decorate a function")
    label = str(name or getattr(fn, "__name__", type(fn).__name__))

    def begin(args: tuple[object, ...], kwargs: dict[str, object]) -> ToolCall | None:
        run = find()
        if run is None or not run.is_current:
            return None
        return ToolCall(run, label, bound_arguments(fn, args, kwargs), effects)

    if inspect.iscoroutinefunction(fn):
        made: Callable[..., Any] = _coroutine(fn, begin)
    elif inspect.isasyncgenfunction(fn):
        made = _async_generator(fn, begin)
    elif inspect.isgeneratorfunction(fn):
        made = _generator(fn, begin)
    else:
        made = _function(fn, begin)
    return cast(F, functools.wraps(fn)(made))


def _function(fn: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        record = begin(args, kwargs)
        if record is None:
            return fn(*args, **kwargs)
        token = record.enter()
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            record.leave(token)
            record.failed(error)
            raise
        record.leave(token)
        record.completed(result)
        return result

    return call


def _coroutine(fn: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        record = begin(args, kwargs)
        if record is None:
            return await fn(*args, **kwargs)
        token = record.enter()
        try:
            result = await fn(*args, **kwargs)
        except BaseException as error:
            record.leave(token)
            record.failed(error)
            raise
        record.leave(token)
        record.completed(result)
        return result

    return call


def _generator(fn: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        record = begin(args, kwargs)
        inner = fn(*args, **kwargs)
        if record is None:
            return (yield from inner)
        resume: Callable[[], Any] = functools.partial(next, inner)
        while True:
            token = record.enter()
            try:
                item = resume()
            except StopIteration as stop:
                record.leave(token)
                record.completed(stop.value)
                return stop.value
            except BaseException as error:
                record.leave(token)
                record.failed(error)
                raise
            record.leave(token)
            record.item(item)
            try:
                sent = yield item
                resume = functools.partial(inner.send, sent)
            except GeneratorExit:
                inner.close()
                record.stopped()
                raise
            except BaseException as error:
                resume = functools.partial(inner.throw, error)

    return call


def _async_generator(fn: Callable[..., Any], begin: Begin) -> Callable[..., Any]:
    async def call(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        record = begin(args, kwargs) or NotRecorded()
        inner = fn(*args, **kwargs)
        resume: Callable[[], Any] = inner.__anext__
        while True:
            token = record.enter()
            try:
                item = await resume()
            except StopAsyncIteration:
                record.leave(token)
                record.completed(None)
                return
            except BaseException as error:
                record.leave(token)
                record.failed(error)
                raise
            record.leave(token)
            record.item(item)
            try:
                sent = yield item
                resume = functools.partial(inner.asend, sent)
            except GeneratorExit:
                await inner.aclose()
                record.stopped()
                raise
            except BaseException as error:
                resume = functools.partial(inner.athrow, error)

    return call
