"""The power walks: cycle (off → seen off → dwell → on → seen on), on, off, soft off; which is due is decided elsewhere.

Only `on` and `off` are ever repeated, because a second copy of them does no second thing; `reset` and `cycle` are not
used at all. A walk can be started again at any moment: on a host that is off it goes straight to `on` (FC-B15).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from hostler_coordinator.bmc.answers import BmcTarget, FaultClass, PowerState, Verb
from hostler_coordinator.bmc.clock import REAL_TIME, Timing
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.walk import (
    CycleResult,
    CycleSettings,
    EvidenceKind,
    Outcome,
    PowerCaller,
    Progress,
    Walk,
    WalkEnded,
    Wanted,
)
from hostler_coordinator.bmc.worker_process import Confirm

_BOOTED = {"osrunning"}


async def power_cycle(
    caller: PowerCaller,
    target: BmcTarget,
    settings: CycleSettings,
    confirm: Confirm,
    pacing: Pacing,
    progress: Progress | None = None,
    *,
    timing: Timing = REAL_TIME,
) -> CycleResult:
    """Take the host through off and on; a host that is already off is only switched on (FC-B02).

    `confirm` is asked before every order. Its no cancels what has not been sent, with one exception: once our own off
    was seen, the host is switched on again whatever it says.
    """
    walk = Walk(caller, target, settings, confirm, pacing, progress=progress, timing=timing)
    return await _ended(walk, lambda: _cycle(walk))


async def power_on(
    caller: PowerCaller,
    target: BmcTarget,
    settings: CycleSettings,
    confirm: Confirm,
    pacing: Pacing,
    progress: Progress | None = None,
    *,
    timing: Timing = REAL_TIME,
) -> CycleResult:
    """Switch the host on and see it on twice; a host that is on already is left alone."""
    walk = Walk(caller, target, settings, confirm, pacing, progress=progress, timing=timing)
    return await _ended(walk, lambda: _on(walk))


async def power_off(
    caller: PowerCaller,
    target: BmcTarget,
    settings: CycleSettings,
    confirm: Confirm,
    pacing: Pacing,
    progress: Progress | None = None,
    *,
    timing: Timing = REAL_TIME,
) -> CycleResult:
    """Switch the host off and see it off twice; with `soft_s` the operating system is asked first."""
    walk = Walk(caller, target, settings, confirm, pacing, progress=progress, timing=timing)
    return await _ended(walk, lambda: _off(walk))


async def soft_off(
    caller: PowerCaller,
    target: BmcTarget,
    settings: CycleSettings,
    confirm: Confirm,
    pacing: Pacing,
    progress: Progress | None = None,
    *,
    timing: Timing = REAL_TIME,
) -> CycleResult:
    """Ask the operating system to shut down and see the host off twice within `soft_s`; never forces."""
    walk = Walk(caller, target, settings, confirm, pacing, progress=progress, timing=timing)
    return await _ended(walk, lambda: _soft_only(walk))


async def _ended(walk: Walk, steps: Callable[[], Awaitable[CycleResult]]) -> CycleResult:
    try:
        return await steps()
    except WalkEnded as end:
        return walk.result(end.outcome, end.text, end.fault)


async def _cycle(walk: Walk) -> CycleResult:
    await walk.verify_serial()
    await walk.save_sel()
    if await walk.settled_state() is PowerState.OFF:
        if not walk.settings.on_if_off:
            return walk.result(Outcome.FAILED, "the host is off, and this order does not permit switching it on")
        await _bring_on(walk, walk.confirm)
        text = await _ended_on(walk, "the host was off already and has been switched on")
        return walk.result(Outcome.POWERED_ON, text)
    await _bring_off(walk)
    await walk.timing.sleep(walk.settings.dwell_s)
    await _bring_on(walk, await walk.restore_anyway())
    return walk.result(Outcome.CYCLED, await _ended_on(walk, "off and on were both seen"))


async def _on(walk: Walk) -> CycleResult:
    await walk.verify_serial()
    if await walk.settled_state() is PowerState.ON:
        return walk.result(Outcome.POWERED_ON, await _ended_on(walk, "the host was on already, nothing was sent"))
    await _bring_on(walk, walk.confirm)
    return walk.result(Outcome.POWERED_ON, await _ended_on(walk, "on was seen"))


async def _off(walk: Walk) -> CycleResult:
    await walk.verify_serial()
    await walk.save_sel()
    if await walk.settled_state() is PowerState.OFF:
        return walk.result(Outcome.POWERED_OFF, "the host was off already, nothing was sent")
    await _bring_off(walk)
    return walk.result(Outcome.POWERED_OFF, "off was seen")


async def _soft_only(walk: Walk) -> CycleResult:
    await walk.verify_serial()
    if await walk.settled_state() is PowerState.OFF:
        return walk.result(Outcome.POWERED_OFF, "the host was off already, nothing was sent")
    if await _soft(walk):
        return walk.result(Outcome.POWERED_OFF, "the host shut down")
    return walk.result(
        Outcome.FAILED,
        f"the host did not shut down within {walk.settings.soft_s:g} s; it may still do so: hard off, or wait",
        walk.last.fault,
    )


async def _bring_off(walk: Walk) -> None:
    """Soft where wanted, then off until off was seen; ends the walk when it was not."""
    if walk.settings.soft_s > 0 and await _soft(walk):
        return
    if not walk.settings.force:
        text = "the host did not shut down by itself and force is not permitted (bmc.force): shut it down by hand"
        raise WalkEnded(Outcome.FAILED, text, FaultClass.NO_FORCE)
    await walk.pacing.destructive()
    answer = await walk.order(Verb.OFF, walk.confirm)
    if answer.withheld and not walk.touched:
        raise WalkEnded(Outcome.CANCELLED, f"cancelled, nothing was sent: {answer.withheld}")
    if answer.fault in {FaultClass.AUTH, FaultClass.CIPHER, FaultClass.NOT_SUPPORTED, FaultClass.IDENTITY}:
        raise WalkEnded(Outcome.FAILED, f"off was refused: {answer.text}", answer.fault)
    only_soft = bool(answer.withheld) and not answer.sent
    limit_s = walk.settings.poll_s * 5 if only_soft else walk.settings.off_limit_s
    off = Wanted(PowerState.OFF, None if answer.withheld else Verb.OFF, limit_s, resend_accepted=False)
    if await walk.seen(off, walk.confirm):
        await walk.note(EvidenceKind.OFF_SEEN, "power off seen twice")
        return
    raise _not_off(walk, answer.withheld if only_soft else "")


def _not_off(walk: Walk, withheld: str) -> WalkEnded:
    accepted = walk.accepted.get(Verb.OFF, 0)
    if withheld:
        text = f"cancelled before the hard off ({withheld}); a soft off was sent and may still take effect"
        return WalkEnded(Outcome.CANCELLED, text)
    if accepted:
        return WalkEnded(
            Outcome.FAILED,
            f"BMC state not trusted: off accepted, but still {walk.state.value} after {walk.settings.off_limit_s:g} s;"
            " no on was sent and the host is not taken for off: look at the machine itself",
            FaultClass.UNTRUSTED,
        )
    return WalkEnded(
        Outcome.FAILED,
        f"off was not seen within {walk.settings.off_limit_s:g} s and never accepted; no on was sent: look at the BMC",
        FaultClass.UNREACHABLE,
    )


async def _soft(walk: Walk) -> bool:
    """One soft off and its deadline; false when only a hard off is left, which never comes before it (FC-B14)."""
    if await _soft_is_hard(walk):
        return False
    progress = walk.last.boot_progress.casefold()
    started = walk.timing.monotonic()
    await walk.pacing.destructive()
    if not await _soft_sent(walk):
        return False
    if not progress:
        text = "how far the boot is cannot be told: the soft off is not repeated"
        await walk.note(EvidenceKind.SOFT_NOT_REPEATED, text, Verb.SOFT)
    gone = await _soft_seen(walk, started, booting=progress not in _BOOTED | {""})
    took_s = walk.timing.monotonic() - started
    if gone:
        await walk.note(EvidenceKind.OFF_SEEN, f"power off seen twice, {took_s:.0f} s after the soft off")
        if took_s < walk.settings.min_soft_s:
            text = f"graceful not honoured: off {took_s:.1f} s after a soft off, too fast for an orderly shutdown"
            await walk.note(EvidenceKind.GRACEFUL_NOT_HONOURED, text)
        return True
    await walk.note(EvidenceKind.SOFT_IGNORED, f"still on {took_s:.0f} s after the soft off", Verb.SOFT)
    return False


async def _soft_is_hard(walk: Walk) -> bool:
    """A soft off that a model carries out as a hard one is skipped or, where force is not permitted, refused.

    A model that cannot be read is not known for anything.
    """
    if not walk.target.known.of_model:
        await walk.learn(await walk.caller.call(walk.target, Verb.MACHINE, tries=1))
    model = walk.target.known.of_model
    broken = walk.settings.soft_off_broken(model) if model else ""
    if not broken:
        return False
    if walk.settings.force:
        await walk.note(EvidenceKind.SOFT_SKIPPED, f"no soft off, {model} does not honour it ({broken})", Verb.SOFT)
        return True
    raise WalkEnded(
        Outcome.FAILED,
        f"nothing was sent: {model} carries out a graceful shutdown as a hard one ({broken}), and force is not"
        " permitted (bmc.force): shut the host down by hand",
        FaultClass.NOT_GRACEFUL,
    )


async def _soft_sent(walk: Walk) -> bool:
    """Send it; false when the BMC knows no such order. Any other failure ends the walk: the host was never asked."""
    answer = await walk.order(Verb.SOFT, walk.confirm)
    if answer.withheld:
        raise WalkEnded(Outcome.CANCELLED, f"cancelled, nothing was sent: {answer.withheld}")
    if answer.sent:
        return True
    if answer.fault is FaultClass.NOT_SUPPORTED:
        await walk.note(EvidenceKind.SOFT_SKIPPED, f"the BMC knows no soft off: {answer.text}", Verb.SOFT)
        return False
    raise WalkEnded(Outcome.FAILED, f"soft off was refused, nothing was sent: {answer.text}", answer.fault)


async def _soft_seen(walk: Walk, started: float, *, booting: bool) -> bool:
    """Wait for off until the deadline; one repeat, when it was sent before the operating system ran and now runs."""
    while (left_s := walk.settings.soft_s - (walk.timing.monotonic() - started)) > 0:
        slice_s = min(left_s, walk.settings.resend_s)
        if await walk.seen(Wanted(PowerState.OFF, None, slice_s, resend_accepted=False), walk.confirm):
            return True
        if booting and walk.last.boot_progress.casefold() in _BOOTED:
            booting = False
            await walk.note(EvidenceKind.STATE_SEEN, "the operating system runs now: soft off once more")
            await walk.order(Verb.SOFT, walk.confirm)
        await walk.timing.sleep(walk.settings.poll_s)  # a log-in that is refused ends `seen` at once
    return False


async def _bring_on(walk: Walk, confirm: Confirm) -> None:
    """Wait for the rack's slot, then on until on was seen; ends the walk when it was not."""
    waited_s = await walk.pacing.power_on(walk.target)
    if waited_s > 0:
        await walk.note(EvidenceKind.PACED, f"waited {waited_s:.1f} s for the power-on slot of rack and feed")
    answer = await walk.order(Verb.ON, confirm)
    if answer.withheld and not walk.touched:
        raise WalkEnded(Outcome.CANCELLED, f"cancelled, nothing was sent: {answer.withheld}")
    on = Wanted(PowerState.ON, Verb.ON, walk.settings.on_limit_s, resend_accepted=True)
    if await walk.seen(on, confirm):
        await walk.note(EvidenceKind.ON_SEEN, "power on seen twice")
        return
    accepted = walk.accepted.get(Verb.ON, 0)
    whose = "we switched it off and" if walk.touched else "the host was off and"
    raise WalkEnded(
        Outcome.FAILED,
        f"left off: {whose} on was sent (accepted {accepted} times), but on was not seen within"
        f" {walk.settings.on_limit_s:g} s; start the walk again or go to the machine",
        FaultClass.UNTRUSTED if accepted else answer.fault or walk.last.fault or FaultClass.UNREACHABLE,
    )


async def _ended_on(walk: Walk, text: str) -> str:
    """Say so when the chassis is on and the host behind it is not running (FC-B20)."""
    if not walk.last.host_state:
        return text
    remark = f"powered, host not running ({walk.last.host_state})"
    await walk.note(EvidenceKind.HOST_NOT_RUNNING, remark)
    return f"{text}; {remark}"
