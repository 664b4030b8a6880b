"""Which Redfish system is the host, and whether it still is, on resources as firmware tells them."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from bmc_fakes import target
from hostler_coordinator.bmc.answers import FaultClass, Machine
from hostler_coordinator.bmc.faults import BmcFaultError
from hostler_coordinator.bmc.redfish_system import choose_system, refuse_change, same_uuid
from redfish_fake import system

UUID = "12345678-9abc-def0-1234-56789abcdef0"
LITTLE_ENDIAN = "78563412-bc9a-f0de-1234-56789abcdef0"


@pytest.mark.parametrize(
    ("told", "same"),
    [
        (UUID, True),
        (UUID.upper(), True),
        (UUID.replace("-", ""), True),
        (LITTLE_ENDIAN, True),
        ("0" + UUID[1:], False),
        ("", False),
        ("not a UUID", False),
        (None, False),
        (7, False),
    ],
)
def test_fc_b06_a_uuid_is_the_same_in_every_spelling_and_byte_order(told: object, same: bool) -> None:
    assert same_uuid(UUID, told) is same
    assert not same_uuid(None, told)


def test_fc_b06_of_two_with_the_same_uuid_the_one_that_can_be_switched_is_the_host() -> None:
    bare = {"UUID": UUID}
    path, _, machine = choose_system({"/a": bare, "/b": system(UUID=UUID)}, target(system_uuid=UUID))
    assert (path, machine.chosen_by) == ("/b", "the UUID")
    with pytest.raises(BmcFaultError, match="2 systems match by the UUID: /a, /b"):
        choose_system({"/a": system(UUID=UUID), "/b": system(UUID=UUID)}, target(system_uuid=UUID))


@pytest.mark.parametrize("told", [7, None, ["x"], {}])
def test_odd_values_are_told_as_nothing(told: Any) -> None:
    odd = system(UUID=told, Manufacturer=told, Model=told, SerialNumber=told)
    _, _, machine = choose_system({"/a": odd}, target(serial=None))
    assert machine == Machine(system="/a", chosen_by="power and a Reset action")


def test_firmwares_words_are_cut_to_what_can_be_stored_and_shown() -> None:
    odd = system(UUID="U\ud800", Manufacturer=" A\x1b[2J ", Model="m" * 1000)
    _, _, machine = choose_system({"/a": odd}, target(serial=None))
    assert (machine.system_uuid, machine.manufacturer, machine.model) == ("U?", "A?[2J", "m" * 100)


@pytest.mark.parametrize(
    ("known", "refused"),
    [
        (Machine(), False),
        (Machine(system="/a"), False),
        (Machine(system="/a", system_uuid=LITTLE_ENDIAN), False),
        (Machine(system="/b", system_uuid=UUID), True),
        (Machine(system="/a", system_uuid="0" + UUID[1:]), True),
    ],
)
def test_fc_b06_only_another_system_than_the_stored_one_is_refused(known: Machine, refused: bool) -> None:
    now = Machine(system="/a", system_uuid=UUID, chosen_by="the serial number")
    if not refused:
        refuse_change(now, target(known=known))
        refuse_change(dataclasses.replace(now, system_uuid=""), target(known=known))
        return
    with pytest.raises(BmcFaultError) as caught:
        refuse_change(now, target(known=known))
    assert caught.value.fault is FaultClass.IDENTITY
    assert "chosen by the serial number" in caught.value.text
    assert "hostler host rebind" in caught.value.text
