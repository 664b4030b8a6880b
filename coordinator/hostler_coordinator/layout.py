"""Where each record lies in etcd, below the region's prefix; pure, the bytes are the codec's."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

from hostler_contract.campaigns import (
    AuditRecord,
    BrakeRelease,
    CampaignRecord,
    EpochRecord,
    KeyRecord,
    Targets,
)
from hostler_contract.domains import Charge, Ledger
from hostler_contract.hosts import BmcFacts, BmcModel, Claim, Hold, HostRecord
from hostler_contract.work import DeadLetterRecord, TaskRecord

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from hostler_contract.shapes import Record

LEADER = "leader"
"""The election's key; its value is a LeaderRecord."""

_PATHS: dict[type[Record], Callable[[Any], str]] = {
    HostRecord: lambda host: f"hosts/{host.id}",
    BmcFacts: lambda facts: f"bmcfacts/{facts.host}",
    BmcModel: lambda model: bmc_model_path(model.name),
    Claim: lambda claim: f"claims/{claim.host}",
    Charge: lambda charge: f"charges/{charge.host}",
    Ledger: lambda ledger: f"ledgers/{ledger.domain}",
    Hold: lambda hold: f"holds/{hold.host}/{hold.id}",
    CampaignRecord: lambda campaign: f"campaigns/{campaign.id}",
    Targets: lambda targets: f"targets/{targets.campaign}/{targets.chunk:05d}",
    TaskRecord: lambda task: f"tasks/{task.campaign}/{task.host}",
    DeadLetterRecord: lambda letter: f"deadletters/{letter.id}",
    KeyRecord: lambda key: key_path(key.caller, key.key),
    BrakeRelease: lambda release: f"releases/{release.host}",
    EpochRecord: lambda _: "epoch",
    AuditRecord: lambda entry: f"audit/{entry.id}",
}

MODELS: dict[str, type[Record]] = {
    "hosts": HostRecord,
    "bmcfacts": BmcFacts,
    "bmcmodels": BmcModel,
    "claims": Claim,
    "charges": Charge,
    "ledgers": Ledger,
    "holds": Hold,
    "campaigns": CampaignRecord,
    "targets": Targets,
    "tasks": TaskRecord,
    "deadletters": DeadLetterRecord,
    "keys": KeyRecord,
    "releases": BrakeRelease,
    "epoch": EpochRecord,
}
"""First path segment to model, for all that a coordinator keeps in memory; audit is read from the store on demand."""


def path_of(record: Record) -> str:
    """The key of a record, relative to the region's prefix."""
    return _PATHS[type(record)](record)


def model_of(path: str) -> type[Record] | None:
    """The model stored at a path; None for paths that are not kept in memory."""
    return MODELS.get(path.split("/", 1)[0])


def bmc_model_path(name: str) -> str:
    """Where what is known of a BMC model lies: by its name in lower case, at most 100 characters, `-` for all else."""
    key = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")
    return f"bmcmodels/{key[:100]}"


def key_path(caller: str, key: str) -> str:
    """Where an idempotency key lies: scoped to its caller, hashed, as keys may hold any character."""
    digest = hashlib.sha256(f"{caller}\0{key}".encode()).hexdigest()
    return f"keys/{digest}"
