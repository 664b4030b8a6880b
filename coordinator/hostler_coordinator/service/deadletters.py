"""Dead letters: tasks that wait for a person, retried in a linked campaign or resolved; the ladder makes them."""

# ruff: noqa: FBT001, FBT002 - the fields of the requests, in the order of the interface

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hostler_contract.campaigns import CampaignRequest, Limits, Selector
from hostler_contract.domains import Cause, CauseKind
from hostler_contract.hosts import HostRecord, Retirement
from hostler_contract.moments import format_instant
from hostler_contract.work import DeadLetterRecord, DeadLetterState, Resolution, ResolutionKind
from hostler_coordinator import ledger, views
from hostler_coordinator.limits import resolve_limits
from hostler_coordinator.names import natural_key, nearest
from hostler_coordinator.pages import page, scope_of
from hostler_coordinator.refusals import BadField, NotFound, Refused
from hostler_coordinator.service import submission
from hostler_coordinator.service.finding import read_at
from hostler_coordinator.service.hosts import check_ticket, retired
from hostler_coordinator.service.writing import attempt, audit, check_reason, write
from hostler_coordinator.standing import is_dead

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hostler_contract import views as V  # noqa: N812  (the house's name for the contract's views)
    from hostler_contract.campaigns import CampaignRecord
    from hostler_coordinator.draft import Draft
    from hostler_coordinator.planner.world import World
    from hostler_coordinator.service.callers import Caller
    from hostler_coordinator.service.desk import Desk
    from hostler_coordinator.state import State

MOST_RETRIED = 80
"""Letters in one retry: they become retried in the transaction that stores their campaign."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Open letters with their hosts, ready to be tried again."""

    letters: tuple[DeadLetterRecord, ...]
    resolved: submission.Resolved


class DeadLetterService:
    """Dead letters, as operators mean them. Runs on the leader."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        return read_at(self._desk)

    async def list(
        self, page_size: int, page_token: str, states: tuple[DeadLetterState, ...], campaign_id: str
    ) -> tuple[tuple[V.DeadLetter, ...], str]:
        """Dead letters, the newest first. Raises BadField."""
        world = self._desk.world()
        wanted = set(states)
        return page(
            [
                letter
                for letter in world.state.dead_letters.values()
                if (not wanted or letter.state in wanted) and (not campaign_id or letter.campaign == campaign_id)
            ],
            key=lambda letter: f"{10**17 - round(letter.at * 1_000_000):018d}.{letter.id}",
            make=lambda letter: views.dead_letter(world, letter),
            size=page_size,
            token=page_token,
            scope=scope_of("letters", sorted(state.value for state in wanted), campaign_id),
        )

    async def get(self, letter_id: str) -> V.DeadLetter:
        """One dead letter. Raises NotFound."""
        return views.dead_letter(self._desk.world(), _letter(self._desk.store.state, letter_id))

    async def retry(self, caller: Caller, ids: tuple[str, ...], reason: str, key: str, dry_run: bool) -> V.Campaign:
        """Open a campaign over exactly the hosts of these letters, as their own campaign did it, in one wave.

        The letters become retried in the same transaction; the same key with the same letters answers the same
        campaign. Raises BadField, NotFound, Refused not-open, host-removed, retired; AlreadyDifferent.
        """
        desk = self._desk
        campaign_id = f"c-{desk.new_id()[:8]}"
        digest = submission.digest_of({"retry": sorted(set(ids)), "reason": reason})

        def make(draft: Draft) -> CampaignRecord:
            why = check_reason(reason)
            known = submission.known_campaign(draft, caller.name, submission.check_key(key), digest)
            if known is not None:
                return known
            retry = _retry(draft.state, ids, why)
            target = draft if not dry_run else type(draft)(draft.state)
            campaign = submission.put_campaign(
                target,
                retry.resolved,
                campaign_id=campaign_id,
                caller=caller.name,
                key=key,
                digest=digest,
                now=desk.now(),
            )
            for letter in retry.letters:
                target.put(letter.model_copy(update={"state": DeadLetterState.RETRIED, "retried_by": campaign_id}))
            names = ", ".join(host.name for host in retry.resolved.hosts)
            audit(target, desk, caller, "deadletter.retry", campaign=campaign_id, reason=why, detail=names)
            return campaign

        async with attempt(desk, caller, "deadletter.retry", reason=reason, dry_run=dry_run):
            campaign = await write(desk, make)
        return views.campaign(desk.world(), desk.plan(), campaign)

    async def resolve(
        self,
        caller: Caller,
        letter_id: str,
        kind: ResolutionKind,
        ticket: str,
        reason: str,
        dry_run: bool,
        force: bool = False,
    ) -> V.DeadLetter:
        """Close a letter and end its charge, unless its host is still dead; as RMA, retire its host under the ticket.

        The same again answers the same; another kind or ticket corrects it, and audit keeps both. A host is called
        fixed when it is heard again, or with `force` and a reason. Raises NotFound; BadField for a missing ticket or
        reason; Refused retried, not-back.
        """
        desk = self._desk
        of_campaign, _, of_host = letter_id.partition(".")

        def make(draft: Draft) -> DeadLetterRecord:
            letter = _letter(draft.state, letter_id)
            rma = kind is ResolutionKind.RMA
            known = check_ticket(ticket) if rma or ticket.strip() else ""
            why = check_reason(reason, needed=force)
            if not _to_resolve(letter, kind, known):
                return letter
            missing = _not_back(desk.world(), letter) if kind is ResolutionKind.FIXED else ""
            if missing and not force:
                raise _refused_as_fixed(desk.world(), letter, missing)
            resolution = Resolution(kind=kind, by=caller.name, at=desk.now(), ticket=known, reason=why)
            after = letter.model_copy(update={"state": DeadLetterState.RESOLVED, "resolution": resolution})
            if dry_run:
                return after
            draft.put(after)
            retirement = Retirement(ticket=known, by=caller.name, at=desk.now(), reason=why) if rma else None
            _discharge(draft, desk.world(), letter, retirement)
            forced = f", forced: {missing}" if missing else ""
            detail = f"{letter.id} as {_as(resolution)}{forced}{_former(letter)}"
            audit(
                draft,
                desk,
                caller,
                "deadletter.resolve",
                host=letter.host,
                campaign=letter.campaign,
                reason=reason,
                detail=detail,
            )
            return after

        async with attempt(
            desk, caller, "deadletter.resolve", host=of_host, campaign=of_campaign, reason=reason, dry_run=dry_run
        ):
            found = await write(desk, make)
        return views.dead_letter(desk.world(), found)


# -- pure parts ------------------------------------------------------------------------------------------------------


def _letter(state: State, letter_id: str) -> DeadLetterRecord:
    found = state.dead_letters.get(letter_id)
    if found is None:
        near = nearest(letter_id, state.dead_letters)
        hint = f"did you mean {' or '.join(near)}?" if near else "look at `hostler deadletter list`"
        raise NotFound("dead letter", letter_id, hint)
    return found


def _to_resolve(letter: DeadLetterRecord, kind: ResolutionKind, ticket: str) -> bool:
    """False when it is resolved in this very way already; raises Refused for one that was retried."""
    known = letter.resolution
    if letter.state is DeadLetterState.RETRIED:
        raise _not_open(letter, "")
    return known is None or (known.kind, known.ticket) != (kind, ticket)


def _not_open(letter: DeadLetterRecord, name: str) -> Refused:
    """`name` is its host's."""
    subject, done = f"dead letter {letter.id}", letter.resolution
    if letter.state is DeadLetterState.RETRIED:
        fix = f"hostler campaign show {letter.retried_by}; what it cannot do has a dead letter of its own"
        return Refused("retried", subject, "it was retried already", holder=f"campaign {letter.retried_by}", fix=fix)
    if done is None:
        return Refused("not-open", subject, "it is open no longer", fix="hostler deadletter list")
    fix = f"to try its host again, begin anew: hostler host reboot {name}"
    if done.kind is ResolutionKind.RMA:
        fix = f"its host is retired; when its board is back: hostler host rebind {name}"
    return Refused("not-open", subject, f"it was resolved as {_as(done)}", holder=done.by, since=done.at, fix=fix)


def _as(resolution: Resolution) -> str:
    return resolution.kind.value + (f" under {resolution.ticket}" if resolution.ticket else "")


def _former(letter: DeadLetterRecord) -> str:
    """What a correction takes the place of; the record keeps the newest only."""
    known = letter.resolution
    if known is None:
        return ""
    why = f": {known.reason}" if known.reason else ""
    return f"; before: {_as(known)} by {known.by} at {format_instant(known.at)}{why}"


def _not_back(world: World, letter: DeadLetterRecord) -> str:
    """Why its host cannot be called fixed: nobody has heard it since. Empty when it is back, gone or retired."""
    host = world.state.hosts.get(letter.host)
    if host is None or host.retired is not None or world.heard(host.id):
        return ""
    if is_dead(world, host):
        return "it is still dead: its agent is silent, and it is charged for that"
    if host.boot_id is None:
        return "no agent has ever attached from it"
    if world.in_grace:
        return "its agent has not been heard yet by the new leader"
    return "its agent is still silent"


def _refused_as_fixed(world: World, letter: DeadLetterRecord, why: str) -> Refused:
    name = world.state.hosts[letter.host].name
    again = f"hostler deadletter retry {letter.id}" if letter.state is DeadLetterState.OPEN else ""
    again = again or f"hostler host reboot {name}"
    fix = f"{again}; or resolve it as rma or ignored, with a ticket; if you know better: --force with --reason"
    seen = world.sightings.get(letter.host)
    since = seen.heard_at if seen is not None and seen.heard_at > 0 else letter.at
    return Refused("not-back", f"host {name}", why, since=since, fix=fix)


def _discharge(draft: Draft, world: World, letter: DeadLetterRecord, retirement: Retirement | None) -> None:
    """End the letter's charge; what the host is charged for otherwise (dead, drained, another letter) stays.

    A correction of an RMA first brings back the host that it had retired. Whoever is not heard is dead, whatever a
    person calls it: the charge then goes on for that, without a gap in which its place could be given away.
    """
    host = draft.record(f"hosts/{letter.host}", HostRecord)
    known, gone = letter.resolution, host.retired if host else None
    back = known is not None and gone is not None and known.kind is ResolutionKind.RMA and gone.ticket == known.ticket
    if host is not None and back:
        host = host.model_copy(update={"retired": None})
        draft.put(host)
    if host is not None and retirement is not None:
        draft.put(retired(draft, host, retirement))
    elif host is not None and host.retired is None and (back or _charged_by(draft, letter)):
        _stays_dead(draft, world, host)
    ledger.drop_causes(draft, letter.host, lambda cause: cause.kind is CauseKind.DEAD_LETTER and cause.ref == letter.id)


def _charged_by(draft: Draft, letter: DeadLetterRecord) -> bool:
    charge = draft.charge(letter.host)
    causes = charge.causes if charge else ()
    return any(cause.kind is CauseKind.DEAD_LETTER and cause.ref == letter.id for cause in causes)


def _stays_dead(draft: Draft, world: World, host: HostRecord) -> None:
    charge = draft.charge(host.id)
    known = any(cause.kind is CauseKind.DEAD for cause in charge.causes) if charge else False
    if known or world.heard(host.id) or host.boot_id is None or draft.claim(host.id).task:
        return
    since = max(world.sighting(host.id).heard_at, world.leader_since)
    ledger.add_cause(draft, host, Cause(kind=CauseKind.DEAD, ref="", since=since, detail="silent"))


def _retry(state: State, ids: Sequence[str], reason: str) -> Retry:
    """Check that these letters can be tried again together, and with which request."""
    if not ids:
        raise BadField("ids", "", "selects nothing: no dead letters were given", "name at least one")
    if len(ids) > MOST_RETRIED:
        raise BadField("ids", len(ids), f"letters are more than {MOST_RETRIED}", "retry them in several steps")
    letters = tuple(_letter(state, letter_id) for letter_id in dict.fromkeys(ids))
    for letter in letters:
        if letter.state is not DeadLetterState.OPEN:
            host = state.hosts.get(letter.host)
            raise _not_open(letter, host.name if host else letter.host)
    hosts = _hosts(state, letters)
    first = _alike(state, letters)
    limits = _limits(first.request.limits, hosts, submission.enrolled(state))
    request = CampaignRequest(
        operation=first.request.operation,
        mode=first.request.mode,
        selector=Selector(hosts=tuple(host.name for host in hosts)),
        limits=limits,
        reason=reason or f"retry of dead letters of {first.id}",
        force=first.request.force,
        retry_of=first.id,
    )
    resolved = submission.Resolved(request, hosts, (), resolve_limits(limits, hosts, submission.enrolled(state)))
    return Retry(letters, resolved)


def _hosts(state: State, letters: Sequence[DeadLetterRecord]) -> tuple[HostRecord, ...]:
    gone = [letter.host for letter in letters if letter.host not in state.hosts]
    if gone:
        reason = f"removed from the inventory since: {', '.join(gone)}"
        fix = "leave their letters out, or resolve them as ignored"
        raise Refused("host-removed", "dead letters", reason, fix=fix)
    hosts = {letter.host: state.hosts[letter.host] for letter in letters}
    for host in hosts.values():
        if host.retired is not None:
            reason = f"it is retired under ticket {host.retired.ticket}"
            holder, since = host.retired.by, host.retired.at
            raise Refused("retired", f"host {host.name}", reason, holder=holder, since=since, fix="leave it out")
    return tuple(sorted(hosts.values(), key=lambda host: natural_key(host.name)))


def _alike(state: State, letters: Sequence[DeadLetterRecord]) -> CampaignRecord:
    """The campaign whose request is repeated; letters of campaigns that did other things cannot go together."""
    found: CampaignRecord | None = None
    for letter in letters:
        campaign = state.campaigns.get(letter.campaign)
        if campaign is None:
            reason = f"its campaign {letter.campaign} is no longer kept, and its request with it"
            raise Refused("campaign-gone", f"dead letter {letter.id}", reason, fix="submit a new campaign")
        if found is not None and _manner(found) != _manner(campaign):
            reason = f"are of campaigns {found.id} and {campaign.id}, which did different things"
            raise BadField("ids", ", ".join(one.id for one in letters[:5]), reason, "retry them one campaign at a time")
        found = found or campaign
    if found is None:
        raise BadField("ids", "", "selects nothing: no dead letters were given", "name at least one")
    return found


def _manner(campaign: CampaignRecord) -> tuple[object, ...]:
    """How a campaign did its work, its waves left out."""
    request = campaign.request
    return request.operation, request.mode, request.force, request.limits.model_copy(update={"waves": ""})


def _limits(limits: Limits, hosts: Sequence[HostRecord], enrolled: Mapping[str, int]) -> Limits:
    """The first campaign's limits for fewer hosts: no waves, and no limit on what none of them belongs to."""
    kept: dict[str, object] = {"waves": ""}
    for name in ("max_down", "max_failures"):
        terms = getattr(limits, name)
        kept[name] = tuple(term for term in terms if _fits(name, term, hosts, enrolled))
    return limits.model_copy(update=kept)


def _fits(name: str, term: str, hosts: Sequence[HostRecord], enrolled: Mapping[str, int]) -> bool:
    try:
        resolve_limits(Limits.model_validate({name: (term,)}), hosts, enrolled)
    except BadField:
        return False
    return True
