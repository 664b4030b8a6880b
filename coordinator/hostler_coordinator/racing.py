"""Runs the two or three sides of one stream until the first of them ends; knows nothing of what they do."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


async def until_either_ends(*works: Coroutine[Any, Any, object]) -> None:
    """Run until the first of these ends, cancel the rest, and raise what the first ones raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if task in done:
            task.result()
