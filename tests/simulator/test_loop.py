"""The simulator's own loop: virtual time, nodes that freeze and die, and the same history for the same seed."""

from __future__ import annotations

import asyncio
import random

import pytest

from simulator.loop import Node, SimLoop, Stuck, new_loop


def looping(seed: int = 1) -> SimLoop:
    return new_loop(random.Random(seed))


def test_time_moves_only_when_nothing_is_ready() -> None:
    loop, seen = looping(), list[tuple[str, float]]()

    async def work(name: str, pause_s: float) -> None:
        for _ in range(3):
            await asyncio.sleep(pause_s)
            seen.append((name, loop.time()))

    async def both() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(work("slow", 3600.0))
            group.create_task(work("quick", 1000.0))

    loop.run_until_complete(both())
    assert seen == [("quick", 1000.0), ("quick", 2000.0), ("quick", 3000.0)] + [("slow", 3600.0 * n) for n in (1, 2, 3)]


def test_asyncios_own_tools_work_in_virtual_time() -> None:
    loop = looping()

    async def tools() -> list[object]:
        queue, event, lock = asyncio.Queue[int](1), asyncio.Event(), asyncio.Lock()
        found: list[object] = []
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(7):
                await queue.get()
        found.append(loop.time())
        async with lock:
            await queue.put(1)
        waiter = asyncio.create_task(event.wait())
        done, pending = await asyncio.wait([waiter], timeout=3)
        found += [len(done), len(pending), loop.time(), await queue.get()]
        event.set()
        found.append(await asyncio.wait_for(waiter, 1))
        return found

    assert loop.run_until_complete(tools()) == [7.0, 0, 1, 10.0, 1, True]


async def count(node_log: list[float], loop: SimLoop) -> None:
    while True:
        await asyncio.sleep(1)
        node_log.append(loop.time())


def test_a_frozen_node_does_nothing_and_is_late_when_thawed() -> None:
    loop, log, node = looping(), list[float](), Node("c1")

    async def world() -> None:
        loop.spawn(node, count(log, loop))
        await asyncio.sleep(2.5)
        loop.freeze(node)
        await asyncio.sleep(10)
        loop.thaw(node)
        await asyncio.sleep(2)

    loop.run_until_complete(world())
    assert log == [1.0, 2.0, 12.5, 13.5, 14.5]


def test_a_dead_node_does_nothing_any_more_not_even_clean_up() -> None:
    loop, log, node = looping(), list[str](), Node("c1")

    async def tidy() -> None:
        try:
            await asyncio.sleep(100)
        finally:
            log.append("cleaned up")

    async def world() -> None:
        loop.spawn(node, tidy())
        await asyncio.sleep(1)
        loop.kill(node)
        await asyncio.sleep(1000)

    loop.run_until_complete(world())
    assert log == []
    assert len(node.tasks) == 1


def test_a_child_of_a_node_belongs_to_it() -> None:
    loop, log, node = looping(), list[float](), Node("agent")

    async def parent() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(count(log, loop))

    async def world() -> None:
        loop.spawn(node, parent())
        await asyncio.sleep(1.5)
        loop.kill(node)
        await asyncio.sleep(5)

    loop.run_until_complete(world())
    assert log == [1.0]


def orders(seed: int) -> str:
    """Which of five nodes acts in which order, all of them ready at the same times."""
    loop, log = looping(seed), list[str]()

    async def act(name: str) -> None:
        for step in range(6):
            await asyncio.sleep(1)
            log.append(f"{name}{step}")

    async def world() -> None:
        await asyncio.gather(*(loop.spawn(Node(name), act(name)) for name in "abcde"))

    loop.run_until_complete(world())
    return " ".join(log)


def test_the_same_seed_gives_the_same_order_and_others_give_others() -> None:
    assert [orders(seed) for seed in range(5)] == [orders(seed) for seed in range(5)]
    assert len({orders(seed) for seed in range(20)}) == 20


def test_what_escapes_from_any_node_ends_the_run() -> None:
    loop = looping()

    async def broken() -> None:
        raise KeyError("a bug")

    async def world() -> None:
        loop.spawn(Node("c1"), broken())
        await asyncio.sleep(5)

    with pytest.raises(KeyError, match="a bug"):
        loop.run_until_complete(world())


def test_what_a_callback_lets_escape_ends_the_run() -> None:
    async def escaping() -> None:
        nothing: dict[str, int] = {}
        asyncio.get_running_loop().call_soon(nothing.__getitem__, "a bug")
        await asyncio.sleep(5)

    with pytest.raises(KeyError, match="a bug"):
        looping().run_until_complete(escaping())


def test_a_world_in_which_nothing_can_happen_is_stuck() -> None:
    loop = looping()
    with pytest.raises(Stuck, match="nothing happens any more"):
        loop.run_until_complete(asyncio.wait_for(loop.create_future(), None))
