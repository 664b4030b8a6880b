"""A site's own drain hook: a program that takes one JSON object and answers with one; it knows Slurm, we do not.

The hook gets `{"verb": "mark"|"status"|"undo", "owner": "hostler:<task>", "host": …}` on standard input and answers
`{"empty": bool, "owner": str, "text": str}`. `owner` in the answer is whose mark stands now, empty for none. `mark`
leaves a mark that somebody else set; `undo` removes the mark only when it belongs to the owner given. Exit status 0 is
required.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

from hostler_agent.children import run_child
from hostler_agent.excerpt import excerpt
from hostler_agent.ports import DrainError, DrainLook


class HookAnswer(BaseModel):
    """What the hook must say."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    empty: bool
    owner: str = ""
    text: str = ""


class HookDrain:
    """Runs the hook in a killable child, one call at a time."""

    def __init__(self, command: Sequence[str], *, host: str, call_timeout_s: float) -> None:
        self._command = tuple(command)
        self._host = host
        self._call_timeout_s = call_timeout_s

    @property
    def configured(self) -> bool:
        """Yes."""
        return True

    async def mark(self, owner: str) -> DrainLook:
        """Set our mark, unless another stands. An answer without any mark is no drain."""
        answer = await self._call("mark", owner)
        if not answer.owner:
            msg = f"drain hook set no mark: {answer.text or 'no reason given'}"
            raise DrainError(msg)
        return DrainLook(empty=answer.empty, owner=answer.owner, text=answer.text)

    async def look(self, owner: str) -> DrainLook:
        """Ask whether the host is empty. Without any mark an empty host is a coincidence, not a drain."""
        answer = await self._call("status", owner)
        text = answer.text or ("empty" if answer.empty else "not yet empty")
        return DrainLook(empty=answer.empty and bool(answer.owner), owner=answer.owner, text=text)

    async def undo(self, owner: str) -> None:
        """Take our mark back; it is an error only if it still stands afterwards."""
        answer = await self._call("undo", owner)
        if answer.owner == owner:
            msg = f"drain hook left our mark: {answer.text or 'no reason given'}"
            raise DrainError(msg)

    async def _call(self, verb: str, owner: str) -> HookAnswer:
        asked = json.dumps({"verb": verb, "owner": owner, "host": self._host}).encode()
        ended = await run_child(self._command, deadline_s=self._call_timeout_s, given=asked)
        if ended.status != 0:
            msg = f"drain hook {verb}: {ended.words}"
            raise DrainError(msg)
        try:
            answer = HookAnswer.model_validate_json(ended.output)
        except ValidationError as error:
            msg = f"drain hook {verb}: answer is not as agreed ({error.error_count()} errors): {ended.output[:200]}"
            raise DrainError(msg) from error
        return answer.model_copy(update={"text": excerpt(answer.text)})
