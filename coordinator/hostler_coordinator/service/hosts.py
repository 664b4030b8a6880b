"""What people do to hosts: drain, undrain, note, retire, rebind, remove, probe; lists and imports are other rooms'."""

# ruff: noqa: FBT001, FBT002 - the fields of the requests, in the order of the interface

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
from hostler_contract.domains import Cause, CauseKind
from hostler_contract.hosts import BmcFacts, DrainMark, HoldKind, HostRecord, Retirement
from hostler_contract.views import BmcVerb
from hostler_contract.work import TaskState
from hostler_coordinator import ledger, views
from hostler_coordinator.bmc_memory import binding, facts_of
from hostler_coordinator.inventory_files import Cell, Row
from hostler_coordinator.inventory_rows import make_entry
from hostler_coordinator.limits import narrow_first
from hostler_coordinator.phrases import counted
from hostler_coordinator.planner.gates import hold_gate, holder, said
from hostler_coordinator.refusals import BadField, BadFields, Refused, Unavailable
from hostler_coordinator.service.finding import host_named, hosts_selected, refuse_in_flight
from hostler_coordinator.service.writing import attempt, audit, check_reason, write, write_each
from hostler_coordinator.standing import task_of
from hostler_coordinator.state import WAITING
from hostler_coordinator.views import listed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hostler_contract.campaigns import Selector
    from hostler_contract.hosts import BmcRef
    from hostler_coordinator.draft import Draft
    from hostler_coordinator.planner.world import World
    from hostler_coordinator.service.callers import Caller
    from hostler_coordinator.service.desk import Desk
    from hostler_coordinator.state import State

LONGEST_NOTE = 1_000
LONGEST_TICKET = 200
OWN_OPERATIONS = 5
"""A host's record, charge, claim or release, BMC facts, and audit entry; its domains' ledgers come on top."""


class HostActs:
    """Changes to single hosts, each with its reason in the audit."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # -- drain -------------------------------------------------------------------------------------------------------

    async def drain(
        self, caller: Caller, selector: Selector, reason: str, dry_run: bool, force: bool = False
    ) -> V.Drained:
        """Mark hosts as drained by a person and charge them; hosts that a person has drained already stay as they are.

        A drain takes hosts out of service on purpose, so it stays within the budgets, all of it or nothing; with
        `force` and a reason it goes over them, and a dry run says so. A host that is out of service already, charged or
        silent, is no reason to refuse. Raises BadField, Refused over-budget, Unavailable.
        """
        desk = self._desk
        async with attempt(desk, caller, "host.drain", reason=reason, dry_run=dry_run):
            why = check_reason(reason, needed=force)
            hosts = [host for host in hosts_selected(desk.store.state, selector) if host.drain is None]
            over = over_budgets(desk.world(), hosts)
            if over and not force and not dry_run:
                raise _refused_over_budget(over)

            def make(draft: Draft, host: HostRecord) -> None:
                now = draft.record(f"hosts/{host.id}", HostRecord)
                if now is None or now.drain is not None or now.retired is not None:
                    return
                full = () if desk.world().silent(now.id) else _full_in(draft, now)
                if full and not force:  # others were first since this was looked at
                    raise _refused_over_budget(full, f"host {now.name}")
                draft.put(now.model_copy(update={"drain": DrainMark(owner=caller.name, reason=why, at=desk.now())}))
                cause = Cause(kind=CauseKind.DRAIN, ref=caller.name, since=desk.now(), detail=why)
                ledger.add_cause(draft, now, cause)
                detail = f"over budget, forced: {'; '.join(full)}" if full else ""
                audit(draft, desk, caller, "host.drain", host=host.id, reason=why, detail=detail)

            if not dry_run:
                await write_each(desk, hosts, make, _cost)
            return V.Drained(hosts=tuple(host.name for host in hosts), over_budget=over)

    async def undrain(self, caller: Caller, selector: Selector, reason: str, dry_run: bool) -> tuple[str, ...]:
        """End persons' drain marks, whoever set them; answers with the hosts that had one. Raises BadField."""
        desk = self._desk
        async with attempt(desk, caller, "host.undrain", reason=reason, dry_run=dry_run):
            why = check_reason(reason)
            hosts = [host for host in hosts_selected(desk.store.state, selector) if host.drain is not None]

            def make(draft: Draft, host: HostRecord) -> None:
                now = draft.record(f"hosts/{host.id}", HostRecord)
                if now is None or now.drain is None:
                    return
                draft.put(now.model_copy(update={"drain": None}))
                ledger.drop_causes(draft, host.id, lambda cause: cause.kind is CauseKind.DRAIN)
                owner = f"drained by {now.drain.owner}"
                audit(draft, desk, caller, "host.undrain", host=host.id, reason=why, detail=owner)

            if not dry_run:
                await write_each(desk, hosts, make, _cost)
            return tuple(host.name for host in hosts)

    # -- one host ----------------------------------------------------------------------------------------------------

    async def note(self, caller: Caller, host: str, note: str, reason: str = "", dry_run: bool = False) -> V.Host:
        """Pin a note to a host; an empty one takes it off. Raises NotFound, BadField."""
        if len(note) > LONGEST_NOTE:
            raise BadField("note", note, f"is longer than {LONGEST_NOTE} characters", "say it shorter")
        why, text = check_reason(reason), note.strip()

        def change(_draft: Draft, record: HostRecord) -> HostRecord:
            return record.model_copy(update={"note": text})

        said = text or "taken off"
        return await self._change(caller, host, "host.note", why, change, detail=said, dry_run=dry_run)

    async def retire(self, caller: Caller, host: str, ticket: str, reason: str, dry_run: bool) -> tuple[V.Host, str]:
        """Take a host out of charge and denominator; what becomes of its work and charges comes with it.

        A task in flight keeps its own charge until it ends. Asked again under the same ticket, the answer is the same.
        Raises NotFound, BadField, Refused retired, power-action.
        """
        why = check_reason(reason)
        known = check_ticket(ticket)
        told = ""

        def change(draft: Draft, record: HostRecord) -> HostRecord:
            nonlocal told
            told = "" if record.retired else consequence_of_retirement(draft.state, record)
            return retired(draft, record, Retirement(ticket=known, by=caller.name, at=self._desk.now(), reason=why))

        said = f"{known}: {why}" if why else known
        after = await self._change(caller, host, "host.retire", said, change, detail=lambda: told, dry_run=dry_run)
        return after, told

    async def rebind(
        self, caller: Caller, host: str, serial: str, bmc: BmcRef | None, reason: str, dry_run: bool
    ) -> V.Host:
        """Carry an identity over to another board: new serial, new BMC or both; a retired host is back with it.

        Raises NotFound, BadField(s), Refused in-flight, serial-taken, bmc-taken.
        """
        desk = self._desk

        def change(draft: Draft, record: HostRecord) -> HostRecord:
            refuse_in_flight(desk.store.state, record, "rebound")
            update = _binding(record, serial, bmc)
            _refuse_taken(desk.store.state, record, update)
            if update.get("serial", record.serial) != record.serial:
                update["boot_id"] = None  # what the new board says first is no boot that nobody asked for
            if forget_bmc(draft, record.id):
                told = "forgotten; what the BMC tells next is stored"
                audit(draft, desk, caller, "host.bmc-facts", host=record.id, reason=why, detail=told)
            return record.model_copy(update=update | {"retired": None, "flags": ()})

        why = check_reason(reason)
        return await self._change(caller, host, "host.rebind", why, change, dry_run=dry_run)

    async def _change(
        self,
        caller: Caller,
        host: str,
        action: str,
        reason: str,
        change: Callable[[Draft, HostRecord], HostRecord],
        *,
        dry_run: bool,
        detail: str | Callable[[], str] = "",
    ) -> V.Host:
        """`detail`: said of the change in the audit, or asked for once it was made."""
        desk = self._desk

        def make(draft: Draft) -> HostRecord:
            record = host_named(draft.state, host)
            scratch = draft if not dry_run else type(draft)(draft.state)
            after = change(scratch, record)
            if after != record and not dry_run:
                draft.put(after)
                told = detail if isinstance(detail, str) else detail()
                audit(draft, desk, caller, action, host=record.id, reason=reason, detail=told)
            return after

        async with attempt(desk, caller, action, host=host, reason=reason, dry_run=dry_run):
            return views.host(desk.world(), await write(desk, make))

    async def remove(self, caller: Caller, host: str, reason: str, dry_run: bool) -> tuple[str, str]:
        """Forget a host; its id and what follows. Its claim stays, so that tokens go on growing if it comes back.

        A task in flight ends as host-removed and then frees its own charge. Raises NotFound, BadField.
        """
        desk = self._desk

        def make(draft: Draft) -> tuple[str, str]:
            record = host_named(draft.state, host)
            told = consequence_of_removal(draft.state, record)
            if not dry_run:
                remove_host(draft, record)
                audit(draft, desk, caller, "host.remove", host=record.id, reason=why, detail=f"{record.name}: {told}")
            return record.id, told

        async with attempt(desk, caller, "host.remove", host=host, reason=reason, dry_run=dry_run):
            why = check_reason(reason)
            return await write(desk, make)

    async def probe_bmc(self, caller: Caller, host: str, verb: BmcVerb, reason: str = "") -> V.BmcProbe:
        """Ask a host's BMC; changes no power. A hold keeps the LED alone too, and a firmware hold every question.

        The LED is audited, and what is asked with a reason. Raises NotFound, Refused no-bmc, held.
        """
        desk = self._desk
        lights = verb in {BmcVerb.LOCATE_ON, BmcVerb.LOCATE_OFF}
        action = f"host.{verb.value.replace('_', '-')}"
        async with attempt(desk, caller, action, host=host, reason=reason, dry_run=not lights):
            why = check_reason(reason)
            record = host_named(desk.store.state, host)
            if record.bmc is None or not record.bmc.address:
                fix = "give its bmc.address in the inventory"
                raise Refused("no-bmc", f"host {record.name}", "no BMC is known for it", fix=fix)
            held = hold_gate(desk.world(), record.id)
            firmware = any(hold.kind is HoldKind.FIRMWARE for hold in desk.world().holds(record.id))
            if held is not None and (lights or firmware):
                fix = "wait for the hold to end, or have it removed"
                raise Refused("held", f"host {record.name}", held.text, holder=held.held_by, since=held.since, fix=fix)
            if lights or why:
                note = partial(audit, host=record.id, reason=why, result="asked")
                await write(desk, lambda draft: note(draft, desk, caller, action))
            answer = await desk.probe(record, verb)
            with suppress(Unavailable):  # the answer is worth telling all the same
                await write(desk, lambda draft: self._learn(draft, caller, record, answer))
            return answer

    def _learn(self, draft: Draft, caller: Caller, asked: HostRecord, answer: V.BmcProbe) -> None:
        """Store what a BMC told when nothing is stored; what is stored is changed by a power walk or a rebind only."""
        host, seen = draft.state.hosts.get(asked.id), answer.bmc_seen
        if host is None or seen is None or binding(host) != binding(asked) or facts_of(draft.state, host) is not None:
            return
        told = seen.model_dump(exclude={"at", "graceful"})
        draft.rely_on(f"hosts/{host.id}")
        draft.put(BmcFacts(host=host.id, binding=binding(host), at=answer.at, **told))
        detail = " ".join(part for part in (seen.system, seen.system_uuid, seen.manufacturer, seen.model) if part)
        audit(draft, self._desk, caller, "host.bmc-facts", host=host.id, detail=f"stored: {detail}")


# -- pure parts ------------------------------------------------------------------------------------------------------


def _cost(host: HostRecord) -> int:
    return OWN_OPERATIONS + len(host.domains)


def over_budgets(world: World, hosts: Sequence[HostRecord]) -> tuple[str, ...]:
    """Each domain that draining these hosts takes over its limit, and who fills it.

    A charged host costs nothing, and one that is silent is not taken out of service by this.
    """
    state = world.state
    served = [host for host in hosts if state.charge(host.id) is None and not world.silent(host.id)]
    more = Counter(name for host in served for name in host.domains)
    return tuple(
        _over(state, name, state.ledger(name).charged, count)
        for name, count in sorted(more.items(), key=lambda item: narrow_first(item[0]))
        if state.ledger(name).charged + count > ledger.limit_of(state, name, None)[0]
    )


def _full_in(draft: Draft, host: HostRecord) -> tuple[str, ...]:
    """The same for one host, as this transaction leaves the ledgers: their counters are compared with it."""
    if draft.charge(host.id) is not None:
        return ()
    counts = {name: draft.ledger(name).charged for name in host.domains}
    state = draft.state
    return tuple(
        _over(state, name, count, 1)
        for name, count in counts.items()
        if count + 1 > ledger.limit_of(state, name, None)[0]
    )


def _over(state: State, name: str, charged: int, more: int) -> str:
    limit, source, _ = ledger.limit_of(state, name, None)
    held = [holder(state, charge) for charge in ledger.holders(state, name)]
    now = f"{charged} now: {listed(held, 3)}" if held else f"{charged} now"
    return f"{name} would have {charged + more} of {limit} ({source}) out of service ({now})"


def _refused_over_budget(over: Sequence[str], subject: str = "drain") -> Refused:
    fix = "drain fewer at a time, or raise it with hostler domain set-budget; to go over it: --force with --reason"
    more = f"; and {len(over) - 2} more" if len(over) > 2 else ""
    return Refused("over-budget", subject, "; ".join(over[:2]) + more, fix=fix)


def check_ticket(ticket: str) -> str:
    """The ticket without surrounding blanks; raises BadField unless it has 1 to 200 printable characters."""
    text = ticket.strip()
    if not text or len(text) > LONGEST_TICKET or not text.isprintable():
        reason = "is missing" if not text else "is too long, or has characters that cannot be printed"
        raise BadField("ticket", ticket, reason, "give the ticket under which the machine is out, such as RMA-4711")
    return text


def retired(draft: Draft, record: HostRecord, retirement: Retirement) -> HostRecord:
    """The record of a host that goes out of charge and denominator; its charge but for a task's is ended in the draft.

    The same ticket again changes nothing. Raises Refused when it is retired under another ticket, and while its BMC is
    being told.
    """
    known = record.retired
    if known is not None and known.ticket == retirement.ticket:
        return record
    if known is not None:
        reason = f"it is retired under ticket {known.ticket} already"
        raise Refused("retired", f"host {record.name}", reason, holder=known.by, since=known.at)
    refuse_power_action(draft, record)
    discharge(draft, record.id)
    return record.model_copy(update={"retired": retirement, "drain": None})


def discharge(draft: Draft, host: str) -> None:
    """End every charge of a host but that of a task in flight, which ends with the task."""
    ledger.drop_causes(draft, host, lambda cause: cause.kind is not CauseKind.TASK)


def remove_host(draft: Draft, record: HostRecord) -> None:
    """Delete a host with its holds and its brake release, and end its charges; claim, tasks and letters stay."""
    refuse_power_action(draft, record)
    discharge(draft, record.id)
    forget_bmc(draft, record.id)
    draft.delete(f"hosts/{record.id}")
    for hold in draft.state.holds(record.id):
        draft.delete(f"holds/{hold.host}/{hold.id}")
    if draft.state.release(record.id) is not None:
        draft.delete(f"releases/{record.id}")


def refuse_power_action(draft: Draft, record: HostRecord) -> None:
    """Raises Refused while a walk is at its power: it may have switched it off, and what it does must be seen to."""
    campaign, _, host = draft.claim(record.id).task.partition("/")
    task = draft.state.task(campaign, host) if host else None
    if task is not None and task.state is TaskState.POWER_CYCLING:
        # Only a record that stays as it is lets another leader switch it on again.
        reason, fix = "its BMC is being told to switch it off and on", "wait until the power action has ended"
        raise Refused("power-action", f"host {record.name}", reason, holder=campaign, since=task.since, fix=fix)


def forget_bmc(draft: Draft, host: str) -> bool:
    """What its BMC told of the machine behind it holds no longer, if it told anything: it is learned anew."""
    known = draft.state.bmc_facts(host) is not None
    if known:
        draft.delete(f"bmcfacts/{host}")
    return known


def consequence_of_removal(state: State, record: HostRecord) -> str:
    """What follows from removing a host, in a sentence."""
    return _consequence(state, record, "ends as host-removed and frees its charge", "host-removed")


def consequence_of_retirement(state: State, record: HostRecord) -> str:
    """What follows from retiring a host, in a sentence."""
    return _consequence(state, record, "goes on and keeps its charge until it ends", "retired")


def _consequence(state: State, record: HostRecord, work: str, skipped_as: str) -> str:
    parts: list[str] = []
    task = task_of(state, record.id)
    if task is not None:
        word = task.state.value.replace("_", " ")
        parts.append(f"its task in campaign {task.campaign} ({word}) {work}")
    waiting = [
        campaign
        for campaign in sorted(state.open_campaigns)
        if record.id in state.target_set(campaign)
        and ((known := state.task(campaign, record.id)) is None or known.state in WAITING)
    ]
    if waiting:
        parts.append(f"it is skipped as {skipped_as} in {listed(waiting)}")
    charge = state.charge(record.id)
    others = [c for c in charge.causes if c.kind is not CauseKind.TASK] if charge else []
    if others:
        named = ", ".join(said(cause) for cause in others)
        parts.append(f"it no longer counts as out of service ({named})")
    letters = [letter for letter in state.dead_letters.values() if letter.host == record.id and letter.state == "open"]
    if letters:
        stay = "stays" if len(letters) == 1 else "stay"
        parts.append(f"{counted(len(letters), 'open dead letter')} {stay}, to be resolved")
    return "; ".join(parts) or "nothing else depends on it"


def _binding(record: HostRecord, serial: str, bmc: BmcRef | None) -> dict[str, object]:
    """The new serial and BMC, held to the inventory's own rules; raises BadField(s)."""
    cells = {"name": record.name, "id": record.id}
    if serial.strip():
        cells["serial"] = serial.strip()
    given = {"protocol": bmc.protocol, "address": bmc.address, "credentials": bmc.credentials} if bmc else {}
    if bmc is not None and bmc.port:
        given["port"] = str(bmc.port)
    if not serial.strip() and bmc is None:
        raise BadField("serial", serial, "is missing, and so is bmc", "give the new board's serial, its BMC or both")
    cells |= {f"bmc.{key}": text for key, text in given.items() if text}
    problems: list[BadField] = []
    make_entry(Row(0, {key: Cell(0, (text,)) for key, text in cells.items()}), problems)
    if bmc is not None and not bmc.address:
        problems.append(BadField("bmc.address", "", "is missing", "give the address at which the BMC answers"))
    fields = [BadField(bad.field.removeprefix("line 0: "), bad.value, bad.reason, bad.fix) for bad in problems]
    if fields:
        raise fields[0] if len(fields) == 1 else BadFields(fields)
    update: dict[str, object] = {"serial": serial.strip()} if serial.strip() else {}
    if bmc is not None:
        kept = bmc.credentials or (record.bmc.credentials if record.bmc else "")
        update["bmc"] = bmc.model_copy(update={"credentials": kept})
    return update


def _refuse_taken(state: State, record: HostRecord, update: dict[str, object]) -> None:
    """Two hosts never share a serial or a BMC."""
    after = record.model_copy(update=update)
    for other in state.hosts.values():
        if other.id == record.id:
            continue
        if "serial" in update and other.serial.upper() == after.serial.upper():
            reason = f"serial {after.serial} belongs to {other.name}"
            raise Refused(
                "serial-taken", f"host {record.name}", reason, holder=other.name, fix="remove that host first"
            )
        if (
            "bmc" in update
            and after.bmc
            and other.bmc
            and (after.bmc.address, after.bmc.port) == (other.bmc.address, other.bmc.port)
        ):
            reason = f"the BMC at {after.bmc.address} port {after.bmc.port} belongs to {other.name}"
            raise Refused("bmc-taken", f"host {record.name}", reason, holder=other.name, fix="correct one of the two")
