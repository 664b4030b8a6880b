"""Redfish vendor cases against a small BMC over TLS: sessions, reset types, the host's own system, ETags, not ready."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bmc_fixtures import write_secret
from hostler_coordinator.bmc.answers import BmcTarget, Confirmation, FaultClass, Machine, PowerState, Protocol, Verb
from hostler_coordinator.bmc.cycle import power_cycle
from hostler_coordinator.bmc.pacing import Pacing
from hostler_coordinator.bmc.pool import BmcPool
from hostler_coordinator.bmc.walk import CycleSettings, EvidenceKind, Outcome
from redfish_fake import RESET, SESSIONS, SYSTEM, Answer, FakeRedfish, error, system

pytestmark = pytest.mark.integration

BASEBOARD = "/redfish/v1/Systems/HGX_Baseboard_0"
QUICK_WALK = CycleSettings(dwell_s=0.1, poll_s=0.1, off_limit_s=10.0, on_limit_s=10.0)


async def yes() -> Confirmation:
    return Confirmation(ok=True)


@pytest.fixture
def redfish(tmp_path: Path) -> Iterator[FakeRedfish]:
    with FakeRedfish(tmp_path) as fake:
        yield fake


@pytest.fixture
def bmc(redfish: FakeRedfish, tmp_path: Path) -> BmcTarget:
    secret = write_secret(tmp_path / "secret")
    return BmcTarget("h1", Protocol.REDFISH, "127.0.0.1", redfish.port, secret, serial="SN1", ca_file=redfish.ca_file)


async def test_a_cycle_uses_listed_types_and_leaves_no_session(bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget):
    result = await power_cycle(bmc_pool, bmc, QUICK_WALK, yes, Pacing())
    assert result.outcome is Outcome.CYCLED, result
    assert redfish.reset_types == ["ForceOff", "On"]
    assert redfish.open_sessions == set()
    assert redfish.most_sessions == 1


async def test_a_withheld_order_is_not_posted_and_its_session_is_deleted(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    async def no() -> Confirmation:
        return Confirmation(ok=False, why_not="held")

    answer = await bmc_pool.call(bmc, Verb.OFF, no)
    assert (answer.withheld, redfish.reset_types, redfish.open_sessions) == ("held", [], set())


async def test_an_unknown_certificate_is_another_machine_until_told_otherwise(bmc_pool: BmcPool, bmc: BmcTarget):
    strange = dataclasses.replace(bmc, ca_file=None)
    assert (await bmc_pool.call(strange, Verb.STATUS)).fault is FaultClass.IDENTITY
    assert (await bmc_pool.call(dataclasses.replace(strange, verify_tls=False), Verb.STATUS)).ok


async def test_a_wrong_password_is_auth_and_quoted_nowhere(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget, tmp_path: Path
):
    wrong = dataclasses.replace(bmc, credentials_ref=write_secret(tmp_path / "wrong", "WrongSecret99"))
    answer = await bmc_pool.call(wrong, Verb.STATUS)
    assert (answer.fault, answer.tries) == (FaultClass.AUTH, 1)
    assert "WrongSecret99" not in repr(answer)  # this BMC quotes it in its message


async def test_fc_b04_with_all_sessions_used_basic_authentication_is_tried(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    full = error(503, "IDRAC.2.4.RAC0218", "The maximum number of user sessions is reached.")
    redfish.rule = lambda method, path, *_: full if (method, path) == ("POST", SESSIONS) else None
    answer = await bmc_pool.call(bmc, Verb.STATUS)
    assert answer.state is PowerState.ON, answer


async def test_fc_b04_without_basic_authentication_the_class_is_sessions_exhausted(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    def rule(method: str, path: str, *_: Any) -> Answer | None:
        if path == "/redfish/v1/":
            return None
        return error(503, "IDRAC.2.4.RAC0218") if method == "POST" else Answer(401)

    redfish.rule = rule
    answer = await bmc_pool.call(bmc, Verb.STATUS, tries=1)
    assert (answer.fault, answer.state) == (FaultClass.NO_SLOTS, PowerState.UNKNOWN)
    assert "sessions exhausted" in answer.text


async def test_fc_b04_our_session_is_deleted_after_errors_and_a_401_to_that_is_harmless(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    redfish.rule = lambda _, path, *__: Answer(500) if path == SYSTEM else None
    assert (await bmc_pool.call(bmc, Verb.STATUS, tries=1)).fault is not None
    assert redfish.most_sessions == 1
    assert redfish.open_sessions == set()
    redfish.rule = lambda method, *_: Answer(401) if method == "DELETE" else None
    assert (await bmc_pool.call(bmc, Verb.STATUS)).ok


@pytest.mark.parametrize("verb", [Verb.CYCLE])
async def test_fc_b05_a_type_that_is_not_listed_is_never_sent(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget, verb: Verb
):
    answer = await bmc_pool.call(bmc, verb, yes)
    assert (answer.fault, answer.sent) == (FaultClass.NOT_SUPPORTED, False)
    assert "allows only ForceOff, ForceRestart" in answer.text
    assert redfish.reset_types == []


async def test_fc_b05_a_graceful_reboot_is_shutdown_seen_off_and_on(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    settings = dataclasses.replace(QUICK_WALK, soft_s=10.0, force=False)
    result = await power_cycle(bmc_pool, bmc, settings, yes, Pacing())
    assert result.outcome is Outcome.CYCLED
    assert redfish.reset_types == ["GracefulShutdown", "On"]


async def test_fc_b05_types_listed_in_action_info_are_obeyed(bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget):
    action = {"target": RESET, "@Redfish.ActionInfo": f"{SYSTEM}/ResetActionInfo"}
    redfish.resources[SYSTEM] = system(Actions={"#ComputerSystem.Reset": action})
    listed = {"Parameters": [{"Name": "ResetType", "AllowableValues": ["ForceOn", "ForceOff"]}]}
    redfish.resources[f"{SYSTEM}/ResetActionInfo"] = listed
    assert (await bmc_pool.call(bmc, Verb.SOFT, yes)).fault is FaultClass.NOT_SUPPORTED
    assert (await bmc_pool.call(bmc, Verb.OFF, yes)).ok
    assert redfish.reset_types == ["ForceOff"]


def with_baseboard(redfish: FakeRedfish, **baseboard: Any) -> None:
    members = [{"@odata.id": BASEBOARD}, {"@odata.id": SYSTEM}]
    redfish.resources["/redfish/v1/Systems"] = {"Members": members}
    redfish.resources[BASEBOARD] = {"UUID": "0", "SerialNumber": "GPU-BOARD"} | baseboard


@pytest.mark.parametrize(
    "known",
    [
        {"system_uuid": "11111111-2222-3333-4444-555555555555", "serial": None},
        {"serial": "SN1"},
        {"serial": None},
    ],
)
async def test_fc_b06_the_host_is_chosen_and_not_the_gpu_baseboard_listed_first(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget, known: dict[str, Any]
):
    with_baseboard(redfish)
    answer = await bmc_pool.call(dataclasses.replace(bmc, **known), Verb.STATUS)
    assert (answer.state, answer.system) == (PowerState.ON, SYSTEM)


async def test_fc_b06_two_systems_that_qualify_are_refused_by_name(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    with_baseboard(redfish, **system(SerialNumber="SN9", UUID="9"))
    anonymous = dataclasses.replace(bmc, serial=None)
    answer = await bmc_pool.call(anonymous, Verb.OFF, yes)
    assert (answer.fault, answer.sent) == (FaultClass.IDENTITY, False)
    assert BASEBOARD in answer.text
    assert SYSTEM in answer.text
    assert redfish.reset_types == []


async def test_fc_b06_one_unreadable_member_does_not_hide_the_host(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    with_baseboard(redfish)
    del redfish.resources[BASEBOARD]
    assert (await bmc_pool.call(bmc, Verb.STATUS)).system == SYSTEM


async def test_fc_b06_the_choice_is_told_with_its_rule_and_the_model(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    with_baseboard(redfish)
    redfish.resources[SYSTEM] |= {"Manufacturer": "NVIDIA", "Model": "DGX H100 "}
    known = dataclasses.replace(bmc, serial=None, system_uuid="{11111111-2222-3333-4444-555555555555}")
    uuid = "11111111-2222-3333-4444-555555555555"
    for verb in (Verb.STATUS, Verb.SERIAL, Verb.MACHINE):
        answer = await bmc_pool.call(known, verb)
        assert answer.machine == Machine(SYSTEM, uuid, "the UUID", "NVIDIA", "DGX H100")
    swapped = dataclasses.replace(known, system_uuid="11111111-2222-3333-4444-555555555555"[::-1])
    answer = await bmc_pool.call(swapped, Verb.STATUS)
    assert answer.fault is FaultClass.IDENTITY
    assert "correct system_uuid in the inventory" in answer.text


@pytest.mark.parametrize(
    "change",
    [
        {"system": BASEBOARD},
        {"system": "/redfish/v1/Systems/System_9"},
        {"system": SYSTEM, "system_uuid": "99999999-2222-3333-4444-555555555555"},
    ],
)
async def test_fc_b06_a_change_of_the_chosen_system_is_refused_before_any_power_verb(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget, change: dict[str, str]
):
    with_baseboard(redfish)
    known = dataclasses.replace(bmc, known=Machine(**change))
    for verb in (Verb.OFF, Verb.ON, Verb.SOFT):
        answer = await bmc_pool.call(known, verb, yes)
        assert (answer.fault, answer.sent) == (FaultClass.IDENTITY, False)
    result = await power_cycle(bmc_pool, known, QUICK_WALK, yes, Pacing())
    assert (result.outcome, result.fault) == (Outcome.FAILED, FaultClass.IDENTITY)
    assert f"the host's system was {change['system']}" in result.text
    assert f"and now {SYSTEM} (UUID 1111" in result.text
    assert redfish.reset_types == []


async def test_fc_b06_a_system_that_changes_in_the_midst_of_a_walk_gets_no_order(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    """The host's own system vanishes between the look at it and the order; another one could be switched."""
    with_baseboard(redfish, **system(SerialNumber="SN9", UUID="9"))
    left = 3

    def rule(method: str, path: str, _body: dict[str, Any], _headers: dict[str, str]) -> Answer | None:
        nonlocal left
        if (method, path) == ("GET", SYSTEM):
            left -= 1
            return error(404, "Base.1.0.ResourceMissingAtURI") if left < 0 else None
        return None

    redfish.rule = rule
    settings = dataclasses.replace(QUICK_WALK, save_sel=False)
    result = await power_cycle(bmc_pool, bmc, settings, yes, Pacing())
    assert (result.outcome, result.fault) == (Outcome.FAILED, FaultClass.IDENTITY)
    assert f"and now {BASEBOARD}" in result.text
    assert redfish.reset_types == []


@pytest.mark.parametrize("raw", ["PoweringOn", "PoweringOff", "Paused", "Starting", "Sleep", "Error"])
async def test_fc_b07_states_in_between_are_unknown_and_keep_their_word(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget, raw: str
):
    redfish.resources[SYSTEM]["PowerState"] = raw
    answer = await bmc_pool.call(bmc, Verb.STATUS)
    assert (answer.ok, answer.state, answer.raw_state) == (True, PowerState.UNKNOWN, raw)


async def test_fc_b08_a_patch_carries_the_etag_unchanged(bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget):
    redfish.rule = etag_rule(redfish, ['"1700000001"'])
    assert (await bmc_pool.call(bmc, Verb.LOCATE_ON)).ok
    assert redfish.resources[SYSTEM]["LocationIndicatorActive"] is True


async def test_fc_b08_a_resource_that_changed_in_between_is_patched_once_more(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    redfish.rule = etag_rule(redfish, ['"2"', '"3"'])
    assert (await bmc_pool.call(bmc, Verb.LOCATE_ON)).ok
    assert sum(method == "PATCH" for method, *_ in redfish.requests) == 2


async def test_fc_b08_a_resource_that_always_changes_is_an_error_after_two_patches(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    redfish.rule = etag_rule(redfish, [])
    answer = await bmc_pool.call(bmc, Verb.LOCATE_ON, tries=1)
    assert answer.fault is FaultClass.CONFLICT
    assert sum(method == "PATCH" for method, *_ in redfish.requests) == 2


def etag_rule(redfish: FakeRedfish, accepted: list[str]) -> Any:
    """The system's ETag is demanded; each PATCH is measured against the next of `accepted`, none left means 412."""
    waiting = list(accepted)

    def rule(method: str, path: str, _: dict[str, Any], headers: dict[str, str]) -> Answer | None:
        if path != SYSTEM or method == "POST":
            return None
        if method == "GET":
            tag = '"1700000001"' if accepted == ['"1700000001"'] else f'"{len(accepted) - len(waiting) + 2}"'
            return Answer(200, redfish.resources[SYSTEM], {"ETag": tag})
        if "if-match" not in headers:
            return error(428, "Ami.1.0.PreconditionHeaderMissing")
        if len(accepted) == 2 and len(waiting) == 2:
            waiting.pop(0)  # it changes behind the first PATCH
            return Answer(412)
        return None if waiting and headers["if-match"] == waiting[0] else Answer(412)

    return rule


async def test_a_conflict_over_a_state_that_is_reached_is_an_acceptance(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    redfish.resources[SYSTEM]["PowerState"] = "Off"
    redfish.rule = lambda _, path, *__: Answer(409) if path == RESET else None
    assert (await bmc_pool.call(bmc, Verb.OFF, yes)).ok
    answer = await bmc_pool.call(bmc, Verb.ON, yes, tries=1)
    assert (answer.fault, answer.sent) == (FaultClass.CONFLICT, True)


async def test_fc_b16_a_bmc_that_is_not_ready_is_waited_for_as_it_asks(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    left = 2

    def rule(*_: Any) -> Answer | None:
        nonlocal left
        left -= 1
        return error(503, "iLO.2.30.ResourceNotReadyRetry", Retry_After="1") if left >= 0 else None

    redfish.rule = rule
    answer = await bmc_pool.call(bmc, Verb.STATUS)
    assert (answer.state, answer.tries) == (PowerState.ON, 3)


async def test_fc_b18_graceful_restart_is_never_sent(bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget):
    """This BMC offers it, and resets at once when asked for it."""
    action = redfish.resources[SYSTEM]["Actions"]["#ComputerSystem.Reset"]
    action["ResetType@Redfish.AllowableValues"] = ["GracefulRestart", "GracefulShutdown", "On"]
    settings = dataclasses.replace(QUICK_WALK, soft_s=10.0, force=False)
    assert (await power_cycle(bmc_pool, bmc, settings, yes, Pacing())).outcome is Outcome.CYCLED
    assert "GracefulRestart" not in redfish.reset_types


async def test_fc_b14_boot_progress_of_the_bmc_decides_on_the_one_repeat(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    """The first soft off comes during POST and is lost; the second one, with the system up, is heeded."""
    redfish.resources[SYSTEM]["BootProgress"] = {"LastState": "MemoryInitializationStarted"}
    softs = 0

    def rule(method: str, path: str, body: dict[str, Any], _headers: dict[str, str]) -> Answer | None:
        nonlocal softs
        if method == "POST" and path == RESET and body["ResetType"] == "GracefulShutdown":
            softs += 1
            if softs == 1:
                redfish.resources[SYSTEM]["BootProgress"] = {"LastState": "OSRunning"}
                return Answer(204)
        return None

    redfish.rule = rule
    settings = dataclasses.replace(QUICK_WALK, soft_s=60.0, min_soft_s=0.0, force=False, resend_s=1.0)
    result = await power_cycle(bmc_pool, bmc, settings, yes, Pacing())
    assert result.outcome is Outcome.CYCLED, result
    assert softs == 2
    assert redfish.reset_types == ["GracefulShutdown", "On"]


async def test_fc_b18_a_bmc_that_switches_off_at_once_is_noted_with_its_model_and_refused_the_next_time(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    redfish.resources[SYSTEM] |= {"Manufacturer": "Dell", "Model": "R750"}
    settings = dataclasses.replace(QUICK_WALK, soft_s=10.0, min_soft_s=60.0, force=False)
    result = await power_cycle(bmc_pool, bmc, settings, yes, Pacing())
    assert result.outcome is Outcome.CYCLED
    noted = [fact for fact in result.evidence if fact.kind is EvidenceKind.GRACEFUL_NOT_HONOURED]
    assert [fact.machine.of_model for fact in noted] == ["Dell R750"]
    redfish.reset_types.clear()
    found = {noted[0].machine.of_model: noted[0].text}
    again = dataclasses.replace(settings, soft_off_broken=lambda model: found.get(model, ""))
    result = await power_cycle(bmc_pool, bmc, again, yes, Pacing())
    assert (result.outcome, result.fault) == (Outcome.FAILED, FaultClass.NOT_GRACEFUL)
    assert redfish.reset_types == []


async def test_fc_b20_a_quiesced_host_behind_a_powered_chassis_is_told(
    bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget
):
    redfish.resources[SYSTEM]["Status"] = {"State": "Quiesced"}
    answer = await bmc_pool.call(bmc, Verb.STATUS)
    assert (answer.state, answer.host_state) == (PowerState.ON, "Quiesced")
    assert "host not running (Quiesced)" in answer.text


async def test_serials_of_system_and_chassis_are_told(bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget):
    redfish.resources[SYSTEM]["Links"] = {"Chassis": [{"@odata.id": "/redfish/v1/Chassis/1"}, {"@odata.id": "/gone"}]}
    redfish.resources["/redfish/v1/Chassis/1"] = {"SerialNumber": "CH1"}
    assert (await bmc_pool.call(bmc, Verb.SERIAL)).serials == ("SN1", "CH1")


async def test_the_bmc_itself_is_restarted_through_its_manager(bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget):
    target = "/redfish/v1/Managers/1/Actions/Manager.Reset"
    action = {"target": target, "ResetType@Redfish.AllowableValues": ["ForceRestart"]}
    redfish.resources[SYSTEM]["Links"] = {"ManagedBy": [{"@odata.id": "/redfish/v1/Managers/1"}]}
    redfish.resources["/redfish/v1/Managers/1"] = {"Actions": {"#Manager.Reset": action}}
    redfish.resources[target] = {}
    assert (await bmc_pool.call(bmc, Verb.COLD_RESET, yes)).ok
    assert ("POST", target, {"ResetType": "ForceRestart"}) in redfish.requests
    assert redfish.reset_types == []


async def test_the_event_log_is_read_newest_last(bmc_pool: BmcPool, redfish: FakeRedfish, bmc: BmcTarget):
    redfish.resources[SYSTEM]["LogServices"] = {"@odata.id": f"{SYSTEM}/LogServices"}
    members = [{"@odata.id": f"{SYSTEM}/LogServices/Audit"}, {"@odata.id": f"{SYSTEM}/LogServices/Sel"}]
    redfish.resources[f"{SYSTEM}/LogServices"] = {"Members": members}
    redfish.resources[f"{SYSTEM}/LogServices/Sel"] = {"Entries": {"@odata.id": f"{SYSTEM}/LogServices/Sel/Entries"}}
    entries = [{"Created": f"2026-01-0{day}", "Message": "PSU lost"} for day in (2, 1)]
    redfish.resources[f"{SYSTEM}/LogServices/Sel/Entries"] = {"Members": entries}
    answer = await bmc_pool.call(bmc, Verb.SEL)
    assert answer.events == ("2026-01-01 PSU lost", "2026-01-02 PSU lost")


async def test_a_bmc_that_takes_the_connection_and_says_nothing_ends_within_the_deadline(
    bmc_pool: BmcPool, bmc: BmcTarget
):
    with socket.create_server(("127.0.0.1", 0)) as mute:
        target = dataclasses.replace(bmc, port=mute.getsockname()[1])
        answer = await bmc_pool.call(target, Verb.STATUS, tries=1, deadline_s=2.0)
    assert answer.fault in {FaultClass.WEDGED, FaultClass.UNREACHABLE}
