"""What operators do with campaigns: plan, submit, look, watch, pause, resume, abort; starting work is the planner's."""

# ruff: noqa: FBT001 - the fields of the requests, in the order of the interface

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from hostler_contract.campaigns import ENDED
from hostler_coordinator import views
from hostler_coordinator.names import nearest
from hostler_coordinator.pages import page, scope_of
from hostler_coordinator.planner.gates import Room
from hostler_coordinator.planner.starts import gate_now
from hostler_coordinator.refusals import NotFound
from hostler_coordinator.service import submission
from hostler_coordinator.service.finding import read_at
from hostler_coordinator.service.preview import preview
from hostler_coordinator.service.steering import Verb, consequences, steered
from hostler_coordinator.service.writing import attempt, audit, check_reason, write

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from hostler_contract import campaigns as C  # noqa: N812  (the house's name for the contract's campaigns)
    from hostler_contract import views as V  # noqa: N812
    from hostler_contract.hosts import HostRecord
    from hostler_contract.work import TaskState
    from hostler_coordinator.draft import Draft
    from hostler_coordinator.service.callers import Caller
    from hostler_coordinator.service.desk import Desk

WATCH_LEAST_S = 0.2
"""At most five answers a second to one watcher."""
WATCH_LOOK_S = 1.0
"""Waits move without any record moving, so a watcher is looked after at least this often."""
PLANS_REMEMBERED = 64
PLANNED_HOSTS_REMEMBERED = 400_000


class CampaignService:
    """Campaigns, as operators mean them. Runs on the leader."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._planned: OrderedDict[str, tuple[HostRecord, ...]] = OrderedDict()

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        return read_at(self._desk)

    async def plan(self, caller: Caller, request: C.CampaignRequest) -> V.Plan:
        """What would happen. Nothing is written or asked of any host. Raises BadField, BadFields."""
        del caller  # planning leaves no trace, of the caller either
        resolved = submission.resolve(self._desk.store.state, request)
        plan = preview(self._desk.world(), resolved)
        self._remember(plan.plan_token, resolved.hosts)
        return plan

    def _remember(self, token: str, hosts: tuple[HostRecord, ...]) -> None:
        """Keep what newest plans came to, so that a stale token can be answered with the difference."""
        self._planned.pop(token, None)
        self._planned[token] = hosts
        while len(self._planned) > 1 and (
            len(self._planned) > PLANS_REMEMBERED or sum(map(len, self._planned.values())) > PLANNED_HOSTS_REMEMBERED
        ):
            self._planned.popitem(last=False)

    async def submit(
        self, caller: Caller, key: str, request: C.CampaignRequest, expect_count: int, plan_token: str, confirmed: bool
    ) -> tuple[V.Campaign, bool]:
        """Store a campaign under the caller's key; True when the key had been used for this very request before.

        Raises BadField(s); Refused count-needed, count-differs, plan-stale, key-expired; AlreadyDifferent; Unavailable.
        """
        desk = self._desk
        digest = submission.request_digest(request)
        campaign_id = f"c-{desk.new_id()[:8]}"

        def make(draft: Draft) -> tuple[str, bool]:
            known = submission.known_campaign(draft, caller.name, submission.check_key(key), digest)
            if known is not None:
                return known.id, True
            resolved = submission.resolve(draft.state, request)
            submission.check_plan(plan_token, resolved, self._planned.get(plan_token))
            limit = desk.policy.confirm_above_hosts
            submission.check_count(resolved, expect_count, confirmed=confirmed, confirm_above=limit)
            submission.put_campaign(
                draft,
                resolved,
                campaign_id=campaign_id,
                caller=caller.name,
                key=key,
                digest=digest,
                now=desk.now(),
            )
            detail = f"{request.operation.value} {request.mode.value} of {len(resolved.hosts)} hosts"
            audit(draft, desk, caller, "campaign.submit", campaign=campaign_id, reason=request.reason, detail=detail)
            return campaign_id, False

        async with attempt(desk, caller, "campaign.submit", reason=request.reason, dry_run=False):
            stored, repeated = await write(desk, make)
        return self._view(stored), repeated

    async def get(self, campaign_id: str) -> V.Campaign:
        """One campaign. Raises NotFound."""
        return self._view(campaign_id)

    def _view(self, campaign_id: str) -> V.Campaign:
        return views.campaign(self._desk.world(), self._desk.plan(), self._record(campaign_id))

    def _record(self, campaign_id: str) -> C.CampaignRecord:
        known = self._desk.store.state.campaigns
        found = known.get(campaign_id)
        if found is None:
            near = nearest(campaign_id, known)
            hint = f"did you mean {' or '.join(near)}?" if near else "look at `hostler campaign list`"
            raise NotFound("campaign", campaign_id, hint)
        return found

    async def list(
        self, page_size: int, page_token: str, states: tuple[C.CampaignState, ...]
    ) -> tuple[tuple[V.Campaign, ...], str]:
        """Campaigns, the newest first, without domains, hosts in flight and failures. Raises BadField."""
        world, plan = self._desk.world(), self._desk.plan()
        wanted = set(states)
        found = [record for record in world.state.campaigns.values() if not wanted or record.state in wanted]
        return page(
            found,
            key=lambda record: f"{10**17 - round(record.created_at * 1_000_000):018d}.{record.id}",
            make=lambda record: views.campaign(world, plan, record, whole=False),
            size=page_size,
            token=page_token,
            scope=scope_of("campaigns", sorted(state.value for state in wanted)),
        )

    async def watch(self, campaign_id: str) -> AsyncIterator[V.Campaign]:
        """The campaign at once and at every change, at most five a second, until it has ended. Raises NotFound."""
        shown: V.Campaign | None = None
        while True:
            view = self._view(campaign_id)
            if shown is None or _told(view) != _told(shown):
                shown = view
                yield view
                if view.state in ENDED:
                    return
                await self._desk.sleep(WATCH_LEAST_S)
            else:
                await self._desk.changed(WATCH_LOOK_S)

    async def pause(
        self, caller: Caller, campaign_id: str, reason: str, dry_run: bool
    ) -> tuple[V.Campaign, tuple[V.Consequence, ...]]:
        """Start nothing more. Work before the point of no return is taken back, the rest carried to a safe end."""
        return await self._steer(caller, campaign_id, Verb.PAUSE, reason, dry_run=dry_run)

    async def resume(
        self, caller: Caller, campaign_id: str, reason: str, dry_run: bool
    ) -> tuple[V.Campaign, tuple[V.Consequence, ...]]:
        """Go on; failures so far are forgiven."""
        return await self._steer(caller, campaign_id, Verb.RESUME, reason, dry_run=dry_run)

    async def abort(
        self, caller: Caller, campaign_id: str, reason: str, dry_run: bool
    ) -> tuple[V.Campaign, tuple[V.Consequence, ...]]:
        """Cancel what waits, take back what can be, carry the rest to a safe end. A second abort answers the same."""
        return await self._steer(caller, campaign_id, Verb.ABORT, reason, dry_run=dry_run)

    async def _steer(
        self, caller: Caller, campaign_id: str, verb: Verb, reason: str, *, dry_run: bool
    ) -> tuple[V.Campaign, tuple[V.Consequence, ...]]:
        desk = self._desk
        action = f"campaign.{verb.value}"

        def make(draft: Draft) -> tuple[V.Consequence, ...]:
            world = desk.world()
            record = self._record(campaign_id)
            after = steered(world, record, verb, caller.name, check_reason(reason))
            if after is not None and not dry_run:
                draft.put(after)
                audit(draft, desk, caller, action, campaign=record.id, reason=reason)
            return consequences(world, record, verb)

        async with attempt(desk, caller, action, campaign=campaign_id, reason=reason, dry_run=dry_run):
            told = await write(desk, make)
        return self._view(campaign_id), told

    async def list_tasks(
        self, campaign_id: str, page_size: int, page_token: str, states: tuple[TaskState, ...], host: str
    ) -> tuple[tuple[V.Task, ...], str]:
        """Tasks in the order of the targets, those without a record included. Raises NotFound, BadField."""
        record = self._record(campaign_id)
        world = self._desk.world()
        ids: Sequence[str] = (self._target(record, host),) if host else world.state.targets(record.id)
        wanted = set(states)
        if wanted:
            ids = [host_id for host_id in ids if views.task_state(world, record, host_id) in wanted]
        places, room, closed = world.state.positions(record.id), Room.of(world), gate_now(world, record)
        # The campaign's own gates are asked once and not again for every host: the rate looks at every task.
        limits = record.limits.model_copy(update={"starts_per_minute": None})
        asked = record.model_copy(update={"limits": limits})
        return page(
            ids,
            key=lambda host_id: f"{places[host_id]:07d}",
            make=lambda host_id: views.task(world, asked, host_id, room, closed),
            size=page_size,
            token=page_token,
            scope=scope_of("tasks", record.id, sorted(state.value for state in wanted), host),
        )

    async def get_task(self, campaign_id: str, host: str) -> V.Task:
        """One task, by the host's name or id. Raises NotFound."""
        record = self._record(campaign_id)
        world = self._desk.world()
        return views.task(world, record, self._target(record, host), Room.of(world))

    def _target(self, record: C.CampaignRecord, host: str) -> str:
        """Id of a target by the host's name or id; a removed one by its id."""
        state = self._desk.store.state
        found = state.host(host)
        host_id = found.id if found else host
        if host_id not in state.target_set(record.id):
            raise NotFound("task", f"{record.id}/{host}", f"look at `hostler task list {record.id}`")
        return host_id


def _told(view: V.Campaign) -> V.Campaign:
    """What of a view makes it worth sending again: not the clock, nor what moves with it."""
    return view.model_copy(update={"as_of": 0.0, "eta": None})
