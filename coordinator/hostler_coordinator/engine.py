"""The leader's turn: look, plan, commit each decision as a guarded transaction, then tell agents and power workers.

It decides nothing itself. Everything that is sent or begun has been committed before.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

import structlog

from hostler_contract.work import TaskState
from hostler_coordinator import dispatch, learned
from hostler_coordinator.draft import Draft
from hostler_coordinator.enact import UnenactableError, enact
from hostler_coordinator.lifecycle import IllegalTransitionError
from hostler_coordinator.planner.actions import Why, hosts_of
from hostler_coordinator.planner.turn import Plan, plan
from hostler_coordinator.planner.world import World
from hostler_coordinator.ports import Committed, StoreUnavailableError
from hostler_coordinator.refusals import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hostler_contract.work import Token
    from hostler_coordinator.live import RefusedOrder, Sighting
    from hostler_coordinator.planner.actions import Action
    from hostler_coordinator.policy import Policy
    from hostler_coordinator.ports import Clock, Courier, PowerDesk, Store

OPERATIONS_MOST = 96
"""Operations in one transaction, the leader's compare included; etcd takes 128 of each kind."""
IDLE_S = 1.0
"""Silence is looked at this often when nothing else happens."""
SWEEP_S = 0.5
"""Hosts of which nothing new was heard are looked at this often."""
TROUBLE_PAUSE_S = 0.5
SETTLE_S = 0.002
"""Events that come within this time are taken into one turn."""
DOUBT_LOOKS_MOST = 50
"""So often a term in doubt is looked at again before it ends: a stall of the process delays the proof that it lasts."""
DOUBT_LOOK_S = 0.01
ASIDE_FIRST_S = 5.0
ASIDE_MOST_S = 300.0
"""A decision that the store refuses to take is tried again after these, doubling from the first to the most."""

_NOTHING: Mapping[tuple[str, Token], RefusedOrder] = MappingProxyType({})

log = structlog.get_logger(__name__)


class Observer(Protocol):
    """Hears how turns go; must not raise."""

    def turn(self, seconds: float, actions: Mapping[str, int]) -> None:
        """A turn ended."""
        ...

    def lost_race(self) -> None:
        """A commit was refused because something it relied on had changed."""
        ...


@dataclass(frozen=True, slots=True)
class PutAside:
    """A decision that the store works but cannot take, as when its records have grown too large. Times: epoch seconds.

    what: the decision's kind. task: id of the task, or campaign or host, that it was about.
    """

    what: str
    task: str
    reason: str
    since: float
    tries: int
    again_at: float

    def why(self) -> Why:
        """For whoever asks what the task waits for."""
        text = f"cannot be written: {self.reason}"
        return Why("change-too-large", text, "the store", self.since, "tried again", self.again_at)


class Engine:
    """One leader's term: make it when the term begins, `run` until it ends."""

    def __init__(  # the parts of a turn, each with one job
        self,
        *,
        name: str,
        store: Store,
        clock: Clock,
        sightings: Mapping[str, Sighting],
        courier: Courier,
        power: PowerDesk,
        policy: Policy,
        jitter: Callable[[str], float],
        alive: Callable[[], bool],
        observer: Observer,
        refused: Mapping[tuple[str, Token], RefusedOrder] = _NOTHING,
    ) -> None:
        """alive: true while this term may believe that it leads."""
        self._name = name
        self._store = store
        self._clock = clock
        self._sightings = sightings
        self._refused_orders = refused
        self._courier = courier
        self._power = power
        self._policy = policy
        self._jitter = jitter
        self._alive = alive
        self._observer = observer
        self._since = clock.now()
        self._looked_back_at = self._since
        self._swept_at = 0.0
        self._lost_now = False
        self._put_aside_now = 0
        self._one_by_one = False
        """After a lost commit each action goes by itself: one that loses for ever must not hold up the others."""
        self._fresh: set[str] = set()
        self._news = asyncio.Event()
        self._sent: dict[str, tuple[float, set[tuple[object, ...]]]] = {}
        self._boots = learned.Boots()
        self._aside: dict[tuple[str, str], PutAside] = {}
        self.plan = Plan()

    def wake(self, host: str = "") -> None:
        """Something has changed, on this host where one is named: look again soon."""
        if host:
            self._fresh.add(host)
        self._news.set()

    def note(self, host: str) -> None:
        """Something was heard of this host that nobody waits for: the next look takes it in."""
        self._fresh.add(host)

    @property
    def aside(self) -> tuple[PutAside, ...]:
        """Decisions that the store cannot take: a person should look."""
        return tuple(self._aside.values())

    @property
    def since(self) -> float:
        """When this term began."""
        return self._since

    def world(self, fresh: frozenset[str] | None = None) -> World:
        """Everything as it is now; `fresh` as in World."""
        return World(
            state=self._store.state,
            sightings=self._sightings,
            power=self._power.reports(),
            now=self._clock.now(),
            leader=self._name,
            leader_since=self._since,
            policy=self._policy,
            jitter=self._jitter,
            allowances=self._boots.allowances(self._policy),
            fresh=fresh,
            refused=self._refused_orders,
        )

    async def run(self) -> None:
        """Turn after turn until the term is over."""
        while await self._believes():
            try:
                moved = await self.turn()
            except StoreUnavailableError as error:
                log.warning("store unavailable: nothing is decided", reason=error.reason, since=error.since)
                await asyncio.sleep(TROUBLE_PAUSE_S)
                continue
            await self._rest(moved=moved)

    async def _believes(self) -> bool:
        """Whether we may act. After a stall of the process the proof that the term lasts may lie unread: nothing is
        done while it is in doubt, and the term ends only if no proof comes. Looks are counted rather than seconds,
        because in a process that lags both the proof and the looks are late.
        """
        for _ in range(DOUBT_LOOKS_MOST):
            if self._alive():
                return True
            await asyncio.sleep(DOUBT_LOOK_S)
        return self._alive()

    async def turn(self) -> bool:
        """One turn; true when it changed something, so that the next look is due at once."""
        began = self._clock.now()
        self._news.clear()
        fresh = self._news_of()
        world = self.world(fresh)
        self._boots.learn(world)
        look_back = world.now - self._looked_back_at >= self._policy.retention_check_s
        if look_back:
            self._looked_back_at = world.now
        result = plan(world, look_back=look_back)
        self.plan = result
        self._lost_now, self._put_aside_now = False, 0
        moved = await self._apply(world, result.actions)
        self._one_by_one = self._lost_now
        if fresh is None:
            self._take_back(world.now, result.actions)
        after = self.world(None if fresh is None else fresh | hosts_of(result.actions)) if moved else world
        if self._alive():  # a commit can take seconds, and the term may have ended meanwhile
            self._begin_power(after)
            self._tell(after)
        counts = _counted(result.actions)
        if self._put_aside_now:
            counts[PutAside.__name__] = self._put_aside_now
        self._observer.turn(self._clock.now() - began, counts)
        return moved

    def _news_of(self) -> frozenset[str] | None:
        """Hosts heard anew since the last turn; every SWEEP_S all of them, as time alone changes what silence means."""
        fresh, self._fresh = frozenset(self._fresh), set()
        now = self._clock.now()
        if now - self._swept_at >= SWEEP_S:
            self._swept_at = now
            return None
        return fresh

    async def _rest(self, *, moved: bool) -> None:
        if moved:
            return
        again_in = IDLE_S
        if self.plan.look_again_at is not None:
            again_in = min(again_in, max(0.0, self.plan.look_again_at - self._clock.now()) + 0.001)
        try:
            async with asyncio.timeout(again_in):
                await self._news.wait()
            await asyncio.sleep(SETTLE_S)
        except TimeoutError:
            pass

    # -- committing --------------------------------------------------------------------------------------------------

    async def _apply(self, world: World, actions: Sequence[Action]) -> bool:
        """Commit in as few transactions as fit; a lost race drops the rest of the plan."""
        moved = False
        draft = Draft(world.state)
        batch: list[Action] = []
        for action in actions:
            if self._waits_aside(action, world.now):
                continue
            larger = draft.fork()
            if not self._enacted(larger, world, action):
                continue
            full = self._one_by_one or larger.change().operations > OPERATIONS_MOST
            if full and not draft.empty:
                if await self._commit(draft, batch):
                    moved = True
                elif not self._one_by_one:
                    return moved
                larger, batch = Draft(self._store.state), []
                if not self._enacted(larger, world, action):
                    continue
            draft = larger
            batch.append(action)
        if draft.empty:
            return moved
        return await self._commit(draft, batch) or moved

    @staticmethod
    def _enacted(draft: Draft, world: World, action: Action) -> bool:
        try:
            enact(draft, world, action)
        except (UnenactableError, IllegalTransitionError, Refused) as error:
            log.warning("an action no longer fits its records", action=type(action).__name__, reason=str(error))
            return False
        return True

    async def _commit(self, draft: Draft, batch: Sequence[Action]) -> bool:
        try:
            result = await self._store.commit(draft.change())
        except Refused as refused:
            self._refused(batch, refused)
            return False
        if isinstance(result, Committed):
            for action in batch:
                self._aside.pop(_subject(action), None)
            return True
        self._observer.lost_race()
        self._lost_now = True
        log.info("a commit was refused: looking again", deposed=result.deposed)
        if not result.deposed:
            await asyncio.sleep(SETTLE_S)
        return False

    # -- what the store cannot take ----------------------------------------------------------------------------------

    def _refused(self, batch: Sequence[Action], refused: Refused) -> None:
        """The store works and takes no such change. Of several decisions each is tried by itself; a single one is put
        aside, so that it holds up no other, and tried again later: somebody may have made room meanwhile.
        """
        self._news.set()
        if len(batch) > 1:
            self._lost_now = True
            log.info("a commit is more than the store takes: each decision by itself", reason=str(refused))
            return
        now = self._clock.now()
        for action in batch:
            what, task = _subject(action)
            known = self._aside.get((what, task))
            tries = known.tries + 1 if known else 1
            wait_s = min(ASIDE_MOST_S, ASIDE_FIRST_S * 2.0 ** min(tries - 1, 16))
            put = PutAside(what, task, str(refused), known.since if known else now, tries, now + wait_s)
            self._aside[what, task] = put
            self._put_aside_now += 1
            self.plan.whys[task] = put.why()
            log.error(
                "a decision is put aside", action=what, task=task, tries=tries, again_in_s=wait_s, reason=put.reason
            )

    def _waits_aside(self, action: Action, now: float) -> bool:
        """True while this decision is not to be tried."""
        put = self._aside.get(_subject(action))
        if put is None or now >= put.again_at:
            return False
        self.plan.whys[put.task] = put.why()
        self.plan.again_at(put.again_at)
        return True

    def _take_back(self, now: float, planned: Sequence[Action]) -> None:
        """Forget what was put aside and is wanted no more."""
        wanted = {_subject(action) for action in planned}
        self._aside = {subject: put for subject, put in self._aside.items() if subject in wanted or now < put.again_at}

    # -- telling -----------------------------------------------------------------------------------------------------

    def _begin_power(self, world: World) -> None:
        """Begin the intents of this very term; those of earlier terms are adopted by the planner, with a new token."""
        for campaign in world.state.open_campaigns:
            for task in world.state.moving(campaign).values():
                intent = task.power
                if task.state is not TaskState.POWER_CYCLING or intent is None:
                    continue
                if intent.leader == self._name and intent.at >= self._since:
                    self._power.begin(task.id, task.host, intent)

    def _tell(self, world: World) -> None:
        for parcel in dispatch.parcels(world):
            attached_at = world.sighting(parcel.host).attached_at
            known_at, marks = self._sent.get(parcel.host, (0.0, set()))
            if known_at != attached_at:
                marks = set()
            if parcel.mark not in marks and self._sent_now(parcel):
                marks = {*list(marks)[-8:], parcel.mark}
                if parcel.takes_credit:
                    self._sightings[parcel.host].wants_work = False
            self._sent[parcel.host] = (attached_at, marks)

    def _sent_now(self, parcel: dispatch.Parcel) -> bool:
        """False when the host has no session, or the message cannot be written: one odd record spoils no other host."""
        try:
            return self._courier.send(parcel.host, parcel.write())
        except ValueError:
            log.exception("a message cannot be written", host=parcel.host)
            return False


def _subject(action: Action) -> tuple[str, str]:
    """What a decision is about, however its figures change from turn to turn: its kind, and a task's id or less."""
    parts = (getattr(action, "campaign", ""), getattr(action, "host", ""))
    return type(action).__name__, "/".join(part for part in parts if part)


def _counted(actions: Sequence[Action]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for action in actions:
        name = type(action).__name__
        counts[name] = counts.get(name, 0) + 1
    return counts
