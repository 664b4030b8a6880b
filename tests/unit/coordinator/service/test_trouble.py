"""What is said while nothing is decided: the trouble first, then what the records say, and no guess."""

from __future__ import annotations

import dataclasses

import pytest

from hostler_contract.campaigns import Selector
from hostler_contract.hosts import HoldKind
from hostler_contract.work import Verdict
from hostler_coordinator.planner.turn import Plan
from hostler_coordinator.planner.world import World
from hostler_coordinator.ports import StoreUnavailableError
from hostler_coordinator.refusals import Unavailable
from hostler_coordinator.service.campaigns import CampaignService
from hostler_coordinator.service.desk import Desk, StatusParts
from hostler_coordinator.service.fleet import FleetService
from hostler_coordinator.service.trouble import leader_silent, leaderless, store_away
from service_office import ALICE, NOON, Office, request

SINCE = NOON - 60.0
SINCE_TEXT = "2027-01-15T07:59:00.000000Z"
AWAY = store_away(SINCE, "no etcd member answers")


def mirror(office: Office) -> Desk:
    """The desk of a coordinator that does not lead: it hears no host."""

    def world() -> World:
        return dataclasses.replace(office.world(), sightings={}, leader="", leader_since=office.now_s, blind=True)

    return dataclasses.replace(office.desk(), world=world)


@pytest.fixture
def office() -> Office:
    office = Office()
    office.fleet(3)
    office.enrol("gpu-004", heard=False)
    office.parts = StatusParts(
        coordinator="coord-2",
        leaderless_since=SINCE,
        leader_problem="nobody can be elected",
        store_unavailable_since=SINCE,
        store_problem="no etcd member answers",
        trouble=AWAY,
        as_of=SINCE,
    )
    return office


async def test_why_says_the_trouble_first_and_what_the_records_say_of_the_host(office: Office) -> None:
    await FleetService(office.desk()).add_hold(
        ALICE, Selector(hosts=("gpu-001",)), HoldKind.HANDS_OFF, "debugging", None, False
    )
    fleet = FleetService(mirror(office))
    why = await fleet.explain_host("gpu-001")
    assert why.waiting_for == (
        f"the store is unavailable since {SINCE_TEXT}: no etcd member answers; nothing is started; "
        f"by the records as of {SINCE_TEXT}: held by alice (hands off): debugging"
    )
    assert (why.state, why.code, why.since, why.as_of) == ("held", "store-unavailable", SINCE, SINCE)
    assert why.next_step.startswith("look at etcd")
    idle = await fleet.explain_host("gpu-002")
    assert (idle.state, idle.verdict) == ("unknown", Verdict.UNKNOWN)
    assert "by the records" not in idle.waiting_for


async def test_what_only_a_leader_hears_is_unknown(office: Office) -> None:
    fleet = FleetService(mirror(office))
    hosts, _ = await fleet.list_hosts(10, "", None, ())
    assert {host.state for host in hosts} == {"unknown"}
    assert [host.last_heard_at for host in hosts] == [None] * 4
    status = await fleet.status()
    assert (status.hosts, status.hosts_heard, status.leader, status.leaderless_since) == (4, None, "", SINCE)
    assert (status.store_problem, status.next_step) == ("no etcd member answers", AWAY.next_step)


async def test_a_leader_that_only_we_cannot_reach_may_well_decide(office: Office) -> None:
    silent = leader_silent("coord-1", "10.0.0.1:7443", SINCE, "it did not answer in time")
    office.parts = StatusParts(coordinator="coord-2", leader="coord-1", trouble=silent)
    why = await FleetService(mirror(office)).explain_host("gpu-002")
    assert "what it decides is not known here" in why.waiting_for
    assert "nothing is started" not in why.waiting_for
    assert why.as_of == NOON


async def test_a_leader_whose_store_is_away_says_so_too(office: Office) -> None:
    why = await FleetService(office.desk()).explain_host("gpu-001")
    assert (why.state, why.code) == ("up", "store-unavailable")


def test_each_trouble_names_one_time_and_a_next_step() -> None:
    for trouble in (AWAY, leaderless(SINCE), leader_silent("c1", "a:1", SINCE, "it closed the connection")):
        assert trouble.text.count("since") == 1
        assert SINCE_TEXT in trouble.text
        assert trouble.next_step


class _Broken:
    """A store that answers no write after the first so many."""

    def __init__(self, office: Office, good: int, *, in_doubt: bool) -> None:
        self._store, self._good, self._in_doubt = office.store, good, in_doubt
        self.state = office.store.state

    async def commit(self, change: object) -> object:
        self._good -= 1
        if self._good < 0:
            raise StoreUnavailableError("no etcd member answers", SINCE, in_doubt=self._in_doubt)
        return await self._store.commit(change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("in_doubt", "consequence"), [(False, "nothing was changed"), (True, "it may have been done all the same")]
)
async def test_a_change_without_the_store_says_what_became_of_it(
    office: Office, in_doubt: bool, consequence: str
) -> None:
    desk = dataclasses.replace(office.desk(), store=_Broken(office, 0, in_doubt=in_doubt))  # type: ignore[arg-type]
    with pytest.raises(Unavailable) as refused:
        await FleetService(desk).drain(ALICE, Selector(hosts=("gpu-001",)), "x", False)
    text = f"the store is unavailable since {SINCE_TEXT}: no etcd member answers; {consequence}"
    assert (str(refused.value), refused.value.in_doubt) == (text, in_doubt)
    assert (refused.value.code, refused.value.fix) == ("store-unavailable", AWAY.next_step)


async def test_a_change_that_broke_off_says_how_far_it_came() -> None:
    office = Office()
    office.fleet(60)
    desk = dataclasses.replace(office.desk(), store=_Broken(office, 1, in_doubt=False))  # type: ignore[arg-type]
    with pytest.raises(Unavailable) as refused:
        await FleetService(desk).drain(ALICE, Selector(all=True), "x", False, True)
    drained = sum(1 for host in office.state.hosts.values() if host.drain is not None)
    assert 0 < drained < 60
    assert str(refused.value).endswith(f"no etcd member answers; {drained} of 60 were changed before")
    assert "nothing was changed" not in str(refused.value)
    assert (refused.value.in_doubt, "it does the rest" in refused.value.fix) == (True, True)


async def test_what_a_campaign_waits_for_is_not_guessed_without_a_leader(office: Office) -> None:
    asked = request("gpu-001", "gpu-002")
    campaign, _ = await CampaignService(office.desk()).submit(ALICE, "key-1", asked, 2, "", True)
    service = CampaignService(dataclasses.replace(mirror(office), plan=Plan))
    seen = await service.get(campaign.id)
    assert (seen.waiting_code, seen.eta, seen.next_step) == ("undecided", None, "hostler status says why")
    tasks, _ = await service.list_tasks(campaign.id, 10, "", (), "")
    assert {task.waiting_for for task in tasks} == {seen.waiting_for}
