"""From a request to a stored campaign: checks, targets, limits, digests and records; pure, committing is not here."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from hostler_contract.campaigns import CampaignRecord, KeyRecord, Limits, ResolvedLimits, Targets
from hostler_contract.moments import format_instant
from hostler_contract.work import OperationKind, RebootMode
from hostler_coordinator.layout import key_path
from hostler_coordinator.limits import resolve_limits
from hostler_coordinator.names import natural_key
from hostler_coordinator.phrases import counted
from hostler_coordinator.refusals import AlreadyDifferent, BadField, BadFields, Refused
from hostler_coordinator.selector import select
from hostler_coordinator.service.writing import check_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from hostler_contract.campaigns import CampaignRequest
    from hostler_contract.hosts import HostRecord
    from hostler_coordinator.draft import Draft
    from hostler_coordinator.state import State

T = TypeVar("T")

LONGEST_KEY = 200
CHUNK_HOSTS = 2_000
"""Targets in one stored value: at 128 characters each it stays far below 1 MiB."""
STORED_BYTES = 1_300_000
"""One campaign with its targets: they are written in one transaction, and etcd takes requests of 1.5 MiB."""
ASKED_BYTES = 500_000
"""A request as asked, which is stored with its campaign and shown with it: well below 1 MiB."""
KEY_FIX = f"give 1 to {LONGEST_KEY} printable characters, a new key for each new request"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request with its targets in order and its limits counted out."""

    request: CampaignRequest
    hosts: tuple[HostRecord, ...]
    retired: tuple[HostRecord, ...]
    limits: ResolvedLimits

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids of the targets, in order."""
        return tuple(host.id for host in self.hosts)


def enrolled(state: State) -> dict[str, int]:
    """Enrolled hosts of every domain that has any."""
    return {name: count for name in state.domains if (count := len(state.members(name)))}


def resolve(state: State, request: CampaignRequest) -> Resolved:
    """Targets and limits of a request. Raises BadField for one bad field and BadFields for several."""
    problems: list[BadField] = []
    found = _tried(problems, lambda: select(request.selector, tuple(state.hosts.values())))
    hosts = found.hosts if found else ()
    _tried(problems, lambda: _check_request(state, request))
    known = enrolled(state)
    for name, value in request.limits:
        _tried(problems, _limit(name, value, hosts, known))
    if len(problems) == 1:
        raise problems[0]
    if problems:
        raise BadFields(problems)
    resolved = Resolved(request, hosts, found.retired if found else (), resolve_limits(request.limits, hosts, known))
    _check_size(resolved)
    return resolved


def _limit(
    name: str, value: object, hosts: Sequence[HostRecord], known: Mapping[str, int]
) -> Callable[[], ResolvedLimits]:
    """One limit on its own, so that each bad one is named and not only the first."""
    return lambda: resolve_limits(Limits.model_validate({name: value}), hosts, known)


def _tried(problems: list[BadField], check: Callable[[], T]) -> T | None:
    try:
        return check()
    except BadField as problem:
        problems.append(problem)
    except BadFields as several:
        problems.extend(several.problems)
    return None


def _check_request(state: State, request: CampaignRequest) -> None:
    reason = check_reason(request.reason)
    if request.force and not reason:
        raise BadField("reason", request.reason, "is missing: force overrides running jobs and people", "say why")
    if request.operation is OperationKind.SOFT_REBOOT and request.mode is RebootMode.HARD:
        raise BadField("mode", request.mode.value, "no BMC can restart user space alone", "leave it out, or use reboot")
    if request.retry_of and request.retry_of not in state.campaigns:
        raise BadField("retry_of", request.retry_of, "is no known campaign", "leave it out; `deadletter retry` sets it")


def _check_size(resolved: Resolved) -> None:
    """A campaign must fit its transaction, and its request an answer."""
    asked = len(resolved.request.model_dump_json().encode())
    if asked > ASKED_BYTES:
        fix = "use ranges, labels or all; or split it into several campaigns"
        raise BadField("selector", asked, f"bytes of request are more than {ASKED_BYTES}", fix)
    targets = sum(len(host.id.encode()) + 3 for host in resolved.hosts)
    if asked + targets + len(resolved.limits.model_dump_json().encode()) > STORED_BYTES:
        fix = "split it into several campaigns, by fabric for example"
        raise BadField("selector", len(resolved.hosts), "hosts are more than one campaign can hold", fix)


def check_key(key: str) -> str:
    """The key as given; raises BadField unless it has 1 to 200 printable characters."""
    if not key:
        raise BadField("key", key, "is missing", KEY_FIX)
    if len(key) > LONGEST_KEY:
        raise BadField("key", key, f"has {len(key)} characters, more than {LONGEST_KEY}", KEY_FIX)
    if not key.isprintable() or not key.strip():
        raise BadField("key", key, "has characters that cannot be printed, or only blanks", KEY_FIX)
    return key


# -- digests ---------------------------------------------------------------------------------------------------------


def digest_of(asked: object) -> str:
    """SHA-256 of canonical JSON."""
    return hashlib.sha256(json.dumps(asked, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def request_digest(request: CampaignRequest) -> str:
    """Digest of a request as asked: selectors unresolved, the expected count left out."""
    return digest_of(request.model_dump(mode="json"))


def plan_token(request: CampaignRequest, ids: Sequence[str]) -> str:
    """Names what a plan was made for: the request, and the targets that it came to."""
    return f"p-{request_digest(request)[:12]}-{len(ids)}-{digest_of(list(ids))[:24]}"


def check_plan(token: str, resolved: Resolved, planned: Sequence[HostRecord] | None) -> None:
    """Refuse a token that was made for another request or for other targets, with the difference.

    `planned` are the hosts of the plan, when this leader still knows it. Raises Refused("plan-stale").
    """
    now = plan_token(resolved.request, resolved.ids)
    if not token or token == now:
        return
    parts = token.split("-")
    fix = "look at a new plan: hostler campaign plan"
    if len(parts) != 4 or parts[0] != "p" or not parts[2].isdigit():
        raise BadField("plan_token", token, "is no plan's token", "give the token that `hostler campaign plan` showed")
    if parts[1] != now.split("-")[1]:
        raise Refused("plan-stale", "plan", "the token was made for another request", fix=fix)
    if planned is None:
        reason = (
            f"the targets have changed: {counted(int(parts[2]), 'host')} when it was planned, {len(resolved.hosts)} now"
        )
        raise Refused("plan-stale", "plan", reason, fix=fix)
    raise Refused("plan-stale", "plan", f"the targets have changed: {difference(planned, resolved.hosts)}", fix=fix)


def difference(before: Sequence[HostRecord], after: Sequence[HostRecord]) -> str:
    """`+3 -1: +gpu-1, +gpu-2, +gpu-3, -gpu-9`, at most 20 names."""
    old, new = {host.id: host.name for host in before}, {host.id: host.name for host in after}
    added = sorted((new[host] for host in new.keys() - old.keys()), key=natural_key)
    gone = sorted((old[host] for host in old.keys() - new.keys()), key=natural_key)
    names = [f"+{name}" for name in added] + [f"-{name}" for name in gone]
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"+{len(added)} -{len(gone)}: {', '.join(names[:20])}{more}" if names else "their order"


def check_count(resolved: Resolved, expect_count: int, *, confirmed: bool, confirm_above: int) -> None:
    """Law 10: a stated count must be exact, and above the size limit a count or a person's yes is needed."""
    count = len(resolved.hosts)
    if expect_count < 0:
        raise BadField("expect_count", expect_count, "is negative", "give the exact number of targets, or leave it out")
    if expect_count and expect_count != count:
        reason = f"the selector comes to {counted(count, 'host')}, and {expect_count} were expected"
        raise Refused("count-differs", "campaign", reason, fix="look at the plan, then state the count that it shows")
    if count > confirm_above and not expect_count and not confirmed:
        reason = f"it comes to {counted(count, 'host')}, more than {confirm_above}: the exact count must be stated"
        raise Refused("count-needed", "campaign", reason, fix=f"give --expect-count {count}, if that is what you mean")


# -- records ---------------------------------------------------------------------------------------------------------


HOLDS = "holds"
"""What the key of holds names in its record, where a campaign's names its campaign."""


def first_use(record: KeyRecord) -> str:
    """What a key was used for, and when."""
    what = record.campaign if record.campaign == HOLDS else f"campaign {record.campaign}"
    return f"{what}, {format_instant(record.at)}"


def known_campaign(draft: Draft, caller: str, key: str, digest: str) -> CampaignRecord | None:
    """The campaign of a key used before with the same request; None for a new key.

    Raises AlreadyDifferent for another request, and Refused("key-expired") when its campaign is no longer kept.
    """
    found = draft.record(key_path(caller, key), KeyRecord)
    if found is None:
        return None
    if found.digest != digest:
        raise AlreadyDifferent(key, first_use(found))
    campaign = draft.state.campaigns.get(found.campaign)
    if campaign is None:
        reason = f"the key was used for campaign {found.campaign}, which is no longer kept"
        raise Refused("key-expired", f"key {key}", reason, since=found.at, fix="use a new key to run it again")
    return campaign


def put_campaign(
    draft: Draft, resolved: Resolved, *, campaign_id: str, caller: str, key: str, digest: str, now: float
) -> CampaignRecord:
    """Write the key, the campaign and its chunks of targets: all new, all in one transaction."""
    ids = resolved.ids
    chunks = [ids[first : first + CHUNK_HOSTS] for first in range(0, len(ids), CHUNK_HOSTS)]
    deadline_s = resolved.request.limits.deadline_s
    campaign = CampaignRecord(
        id=campaign_id,
        key=key,
        caller=caller,
        digest=digest,
        request=resolved.request,
        limits=resolved.limits,
        state_since=now,
        created_at=now,
        deadline_at=now + deadline_s if deadline_s else None,
        target_count=len(ids),
        chunk_count=len(chunks),
    )
    draft.put(KeyRecord(caller=caller, key=key, digest=digest, campaign=campaign_id, at=now))
    draft.put(campaign)
    for number, chunk in enumerate(chunks):
        draft.put(Targets(campaign=campaign_id, chunk=number, hosts=chunk))
    return campaign
