"""Post-boot checks: the boot is complete and the site's own commands agree; what follows from that is in `decide`."""

from __future__ import annotations

from collections.abc import Sequence

from hostler_agent.children import Ended, run_child
from hostler_agent.ports import Verdict
from hostler_contract.hosts import Usability

NOT_FOUND, NOT_EXECUTABLE, SIGNALLED_FROM = 127, 126, 128


class PostBootChecks:
    """Runs them one after another. The first that does not pass is the reason."""

    def __init__(self, *, boot_target: str, commands: Sequence[Sequence[str]], deadline_s: float) -> None:
        self._boot_target = boot_target
        self._commands = tuple(tuple(command) for command in commands)
        self._deadline_s = deadline_s

    async def run(self) -> Verdict:
        """Bounded by one deadline per command."""
        if self._boot_target:
            verdict = await self._boot_reached()
            if verdict.usability is not Usability.USABLE:
                return verdict
        for command in self._commands:
            ended = await run_child(command, deadline_s=self._deadline_s)
            verdict = judge_command(" ".join(command), ended)
            if verdict.usability is not Usability.USABLE:
                return verdict
        return Verdict(Usability.USABLE)

    async def _boot_reached(self) -> Verdict:
        ended = await run_child(["systemctl", "is-active", self._boot_target], deadline_s=self._deadline_s)
        return judge_target(self._boot_target, ended)


def judge_target(target: str, ended: Ended) -> Verdict:
    """`systemctl is-active` says the state in words; its status alone folds "failed" and "not yet" together."""
    state = ended.output.strip()
    if ended.status == 0 and state == "active":
        return Verdict(Usability.USABLE)
    if state == "failed":
        return Verdict(Usability.UNUSABLE, f"{target} failed")
    if state in {"inactive", "activating", "reloading"}:
        return Verdict(Usability.STARTING, f"{target} is not reached yet ({state})")
    return Verdict(Usability.UNKNOWN, f"{target}: {ended.words}")


def judge_command(command: str, ended: Ended) -> Verdict:
    """0 is good and 1 to 125 bad; a program that is missing, killed or late says nothing of the host (FC-A04)."""
    status = ended.status
    if status == 0:
        return Verdict(Usability.USABLE)
    if status is None:
        return Verdict(Usability.UNKNOWN, f"check {command}: {ended.problem}")
    if status in {NOT_FOUND, NOT_EXECUTABLE} or status < 0 or status > SIGNALLED_FROM:
        return Verdict(Usability.UNKNOWN, f"check {command} could not run (exit status {status}): {ended.words}")
    return Verdict(Usability.UNUSABLE, f"check {command}: {ended.words}")
