"""What people see of hosts and of why they wait; no call is made and no clock is read here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hostler_contract.views import BmcSeen, Host, HostCause, HostWhy
from hostler_coordinator.cli.ages import age_of, moment_of, until_of
from hostler_coordinator.cli.tables import Column, clean, facts, fold

HOST_COLUMNS = (
    Column("NAME"),
    Column("STATE"),
    Column("VERDICT", rank=1),
    Column("FABRIC", rank=3),
    Column("RACK", rank=4),
    Column("HEARD", rank=2, right=True),
    Column("ID", wide=True, rank=6),
    Column("ADDRESS", wide=True, rank=6),
    Column("SERIAL", wide=True, rank=6),
    Column("BOOT ID", wide=True, rank=6),
    Column("CHARGED TO", wide=True, rank=6),
    Column("NOTE", rank=5, flex=True),
)


def host_row(host: Host, now: float | None) -> Sequence[object]:
    """One host as a row of `host list`."""
    return (
        host.name,
        host.state,
        host.verdict,
        host.fabric,
        host.rack,
        age_of(host.last_heard_at, now),
        host.id,
        host.address,
        host.serial,
        host.boot_id,
        ", ".join(host.charged_to),
        _remark(host),
    )


def _remark(host: Host) -> str:
    drained = f"drained by {host.drained_by}: {host.drain_reason}" if host.drained_by else ""
    return "; ".join(part for part in (drained, *host.flags, host.note) if part)


def host_screen(host: Host, now: float | None, width: int | None) -> Iterable[str]:
    """`host show`."""
    condition = host.condition
    heard = f"{age_of(host.last_heard_at, now)} ago" if now and host.last_heard_at else moment_of(host.last_heard_at)
    return facts(
        (
            ("host", f"{host.name} ({host.id})"),
            ("state", host.state),
            ("verdict", host.verdict),
            ("heard", heard),
            ("boot id", host.boot_id),
            ("fabric", host.fabric),
            ("rack", host.rack),
            ("feeds", ", ".join(host.feeds)),
            ("site", host.site),
            ("labels", ", ".join(f"{name}={value}" for name, value in sorted(host.labels.items()))),
            ("model", host.model),
            ("address", host.address),
            ("serial", host.serial),
            ("bmc", f"{host.bmc.protocol} {host.bmc.address}:{host.bmc.port}" if host.bmc else "none"),
            *bmc_facts(host.bmc_seen),
            ("usability", f"{condition.usability} {condition.usability_reason}".strip() if condition else ""),
            ("blocked by", condition.blocked_by if condition else ""),
            ("drained by", f"{host.drained_by}: {host.drain_reason}" if host.drained_by else ""),
            ("charged to", ", ".join(host.charged_to)),
            ("task", host.task_id),
            ("token", str(host.token) if host.token else ""),
            ("kernel", host.facts.kernel if host.facts else ""),
            ("agent", host.facts.agent_version if host.facts else ""),
            ("enrolled", moment_of(host.enrolled_at)),
            ("differs", "; ".join(host.flags)),
            ("note", host.note),
        ),
        width=width,
    )


def bmc_facts(seen: BmcSeen | None) -> Iterable[tuple[str, str]]:
    """What the BMC told: the system that power orders go to, its model, and whether a soft off is worth anything."""
    if seen is None:
        return
    uuid = f", UUID {seen.system_uuid}" if seen.system_uuid else ""
    if seen.system:
        yield "bmc system", f"{seen.system}{uuid} (chosen by {seen.chosen_by}, {moment_of(seen.at)})"
    yield "bmc model", f"{seen.manufacturer} {seen.model}".strip()
    if seen.graceful:
        yield "soft off", f"not sent to this model: {seen.graceful}"


def why_sentence(why: HostWhy) -> str:
    """One sentence: state, what it waits for, who holds it, for how long, and what happens next."""
    return _sentence(why, why.state or "unknown", why.host, why.as_of, (why.waiting_for, why.held_by))


def why_sentences(why: HostWhy) -> list[str]:
    """One sentence for each cause that stands, the first with the host's state."""
    if len(why.causes) < 2:
        return [why_sentence(why)]
    first, *others = why.causes
    told = _sentence(first, why.state or "unknown", why.host, why.as_of, (first.text, first.held_by))
    return [told, *(_sentence(one, "", "besides", why.as_of, (one.text, one.held_by)) for one in others)]


def _sentence(why: HostWhy | HostCause, state: str, subject: str, as_of: float, told: tuple[str, str]) -> str:
    """`told`: what is waited for, and who holds it."""
    waiting, held_by = told[0].rstrip(". ").removeprefix("nothing: "), told[1]
    said = waiting if waiting.startswith(f"{state} ") else f"{state}: {waiting}" if waiting else state
    parts = [f"{subject} is {said}" if state else f"{subject}: {waiting}"]
    if held_by and held_by not in waiting:
        parts.append(f"held by {held_by}")
    if why.since is not None and why.since < as_of:
        parts.append(f"for {age_of(why.since, as_of)}")
    following = why.next_step.rstrip(". ")
    if why.next_at is not None:
        following = f"{following} at {until_of(why.next_at, as_of)}".strip()
    return clean(", ".join(parts) + (f"; next: {following}" if following else "") + ".")


def why_screen(why: HostWhy, *, wide: bool, width: int | None) -> Iterable[str]:
    """`host why`: a sentence for each cause, and with `wide` every fact behind them."""
    for sentence in why_sentences(why):
        yield from fold(sentence, width)
    if wide:
        yield from facts(
            (
                ("code", why.code),
                ("verdict", why.verdict),
                ("boot id", why.boot_id),
                ("held by", why.held_by),
                ("since", moment_of(why.since)),
                ("next", why.next_step),
                ("next at", moment_of(why.next_at)),
                ("charged to", ", ".join(why.charged_to)),
                ("campaign", why.campaign_id),
                ("task", why.task_state or ""),
            ),
            width=width,
        )
