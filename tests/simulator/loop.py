"""One event loop for many processes in virtual time: a seed draws who runs next; what they do is not known here.

Every process of the simulated world is a `Node`. Inside one its callbacks keep their order, as on a loop of its own;
between nodes the order is arbitrary, and drawn. A frozen node runs nothing until it is thawed, and its timers come
late; a dead one runs nothing ever again. Time moves only when nothing is ready.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import itertools
from asyncio import events
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeVar, cast

if TYPE_CHECKING:
    import random
    from contextvars import Context

T = TypeVar("T")


class Node:
    """A process: a coordinator, an agent, or the world itself."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.frozen = False
        self.dead = False
        self.ready: deque[asyncio.Handle] = deque()
        self.tasks: dict[asyncio.Task[Any], None] = {}
        """Unfinished ones. Those of a dead node are kept: what a task does when it is collected would be a last act."""

    def __repr__(self) -> str:
        """Write as its name."""
        return self.name


WORLD = Node("world")
_NODE: contextvars.ContextVar[Node] = contextvars.ContextVar("node", default=WORLD)


def node_of(context: Context | None) -> Node:
    """Where code runs in this context, or in the present one."""
    return _NODE.get() if context is None else context.get(_NODE, WORLD)


class Stuck(Exception):
    """Nothing is ready and no timer is set, though the world waits for something."""


class SimLoop(asyncio.AbstractEventLoop):
    """What asyncio needs of a loop, without sockets, threads and signals."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._now = 0.0
        self._timers: list[tuple[float, int, asyncio.TimerHandle, Node]] = []
        self._order = itertools.count()
        self._busy: dict[Node, None] = {}
        """Nodes with something ready; a dict, as sets have no order that a seed repeats."""
        self.steps = 0
        self.failures: list[BaseException] = []

    # -- nodes -------------------------------------------------------------------------------------------------------

    def spawn(self, node: Node, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run on a node."""
        context = contextvars.copy_context()
        context.run(_NODE.set, node)
        return self.create_task(work, context=context)

    def freeze(self, node: Node) -> None:
        """SIGSTOP."""
        node.frozen = True
        self._busy.pop(node, None)

    def thaw(self, node: Node) -> None:
        """SIGCONT."""
        node.frozen = False
        self._mark(node)

    def kill(self, node: Node) -> None:
        """SIGKILL."""
        node.dead = True
        node.ready.clear()
        self._busy.pop(node, None)

    def _mark(self, node: Node) -> None:
        if node.ready and not node.frozen and not node.dead:
            self._busy[node] = None

    # -- running -----------------------------------------------------------------------------------------------------

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        """Run until this has ended; raises what it raised, or what any task of any node let escape."""
        events._set_running_loop(self)
        try:
            waited = asyncio.ensure_future(cast("Awaitable[T]", future), loop=self)
            while not waited.done():
                self._step()
                if self.failures:
                    raise self.failures[0]
            return waited.result()
        finally:
            events._set_running_loop(None)

    def _step(self) -> None:
        while not self._busy:
            self._advance()
        nodes = list(self._busy)
        node = nodes[self._chance.randrange(len(nodes))] if len(nodes) > 1 else nodes[0]
        handle = node.ready.popleft()
        if not node.ready:
            del self._busy[node]
        if not handle.cancelled():
            self.steps += 1
            handle._run()

    def _advance(self) -> None:
        """To the next timers; those of frozen nodes ring, and are answered after the thaw."""
        if not self._timers:
            raise Stuck(f"nothing happens any more at {self._now:.3f} s")
        self._now = max(self._now, self._timers[0][0])
        while self._timers and self._timers[0][0] <= self._now:
            _, _, handle, node = heapq.heappop(self._timers)
            if not handle.cancelled() and not node.dead:
                node.ready.append(handle)
                self._mark(node)

    # -- what asyncio asks -------------------------------------------------------------------------------------------

    def time(self) -> float:
        """Virtual seconds since the beginning."""
        return self._now

    def call_soon(
        self, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.Handle:
        """Put it behind what its node has to do already."""
        handle = asyncio.Handle(callback, args, self, context)
        node = node_of(context)
        if not node.dead:
            node.ready.append(handle)
            self._mark(node)
        return handle

    def call_at(
        self, when: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer of the node."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self._order), handle, node_of(context)))
        return handle

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Set a timer of the node."""
        return self.call_at(self._now + delay, callback, *args, context=context)

    def create_future(self) -> asyncio.Future[Any]:
        """Make one of asyncio's own."""
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        """Make one of asyncio's own; on the node of its context."""
        task = asyncio.Task(coro, loop=self, name=name, context=context)
        node = node_of(context)
        node.tasks[task] = None
        task.add_done_callback(node.tasks.pop, context=context)
        return task

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """An exception that nobody took is a bug; a task that a dead node left behind is none."""
        if (error := context.get("exception")) is not None:
            self.failures.append(error)

    def get_debug(self) -> bool:
        """No: it would cost, and change nothing."""
        return False

    def is_running(self) -> bool:
        """Whether it is the running one."""
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        """Never: there is nothing to close."""
        return False

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Cancelled timers are passed over when they come up."""


def new_loop(chance: random.Random) -> SimLoop:
    """A loop at second zero. What it lacks of asyncio's loops is what nothing in the simulator may use."""
    return SimLoop(chance)  # type: ignore[abstract]
