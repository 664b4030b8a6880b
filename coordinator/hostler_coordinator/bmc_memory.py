"""What is remembered of hosts' BMCs: the system chosen, the model, what a model does wrong; pure, it asks no BMC."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostler_contract.hosts import BmcFacts, BmcModel, HostRecord
    from hostler_coordinator.state import State


def binding(host: HostRecord) -> str:
    """What facts about a BMC depend on: with another address, serial or UUID in the inventory they are void."""
    bmc = host.bmc
    if bmc is None:
        return ""
    return " ".join((bmc.protocol, f"{bmc.address}:{bmc.port}", bmc.serial or "-", host.system_uuid or "-"))


def facts_of(state: State, host: HostRecord) -> BmcFacts | None:
    """The facts that hold for this host's BMC; None when none were learned under its present binding."""
    facts = state.bmc_facts(host.id)
    return facts if facts is not None and facts.binding == binding(host) else None


def soft_off_broken(state: State, model: str) -> str:
    """Why no soft off is sent to BMCs of this model; empty when nothing speaks against it, or the model is unknown."""
    found = state.bmc_model(model)
    return found.graceful_not_honoured if found is not None else ""


def new_facts(state: State, host: HostRecord, told: BmcFacts | None) -> bool:
    """True when these facts are not the stored ones; when they were told does not matter."""
    if told is None or told.binding != binding(host):
        return False
    known = facts_of(state, host)
    return known is None or known.model_copy(update={"at": told.at}) != told


def new_model(state: State, found: BmcModel | None) -> bool:
    """True when this is the first time that it was found; the first finding stays."""
    return found is not None and not soft_off_broken(state, found.name)
