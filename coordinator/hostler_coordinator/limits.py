"""Reads limits as operators type them and counts them out once, at submit; charging against them is the ledger's."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hostler_contract.campaigns import Limits, ResolvedLimits
from hostler_contract.domains import Budget
from hostler_contract.hosts import HostRecord
from hostler_coordinator.durations import check_duration, format_duration
from hostler_coordinator.quantities import Quantity, parse_quantity, percentage
from hostler_coordinator.refusals import BadField, shown
from hostler_coordinator.waves import wave_sizes
from hostler_coordinator.windows import parse_windows

KINDS = ("fabric", "rack", "feed", "site")
_NARROW = {kind: place for place, kind in enumerate(KINDS)}
TOTAL = "total"
DEFAULT_ATTEMPTS = 2
MOST_ATTEMPTS = 10
MOST_TERMS = 1_000
MOST_STARTS_PER_MINUTE = 100_000.0
LONGEST_SOAK_S = 86_400.0
LONGEST_DRAIN_S = 7 * 86_400.0

_RATE = re.compile(r"([0-9]{1,6})\s*/\s*([0-9]{1,6})?\s*(sec|s|min|m|hour|h|d)")
_UNIT_MINUTES = {"s": 1 / 60, "sec": 1 / 60, "m": 1.0, "min": 1.0, "h": 60.0, "hour": 60.0, "d": 1440.0}
_MAX_DOWN_FIX = 'write "fabric=3", "rack=1", "feed=10%", "fabric/ib-a=2" or "total=5%"'
_FAILURES_FIX = 'write "3", "2%" (of the targets), "fabric=1" or "fabric/ib-a=1"'
_RATE_FIX = 'write starts per time, such as "10/min", "1/30s" or "100/h"'


class EffectiveLimit(NamedTuple):
    """How many hosts of a domain may be down at once; `from_` is campaign, budget or default."""

    limit: int
    from_: str
    rounding: str


class _Term(NamedTuple):
    field: str
    text: str
    scope: str
    quantity: Quantity


class _Targets(NamedTuple):
    host_count: int
    domains: frozenset[str]
    in_kind: Counter[str]
    """Hosts among the targets that belong to at least one domain of the kind."""


class _Counted(NamedTuple):
    domains: dict[str, int]
    total: int | None
    words: list[str]


def resolve_limits(limits: Limits, targets: Sequence[HostRecord], enrolled: Mapping[str, int]) -> ResolvedLimits:
    """Count limits out for these targets, every rounding in words.

    `enrolled` has the number of enrolled (not retired) hosts of every known domain (`kind/name`); percentages of
    a domain are of that, those of `total`, waves and failures of the targets. Raises BadField and changes nothing.
    """
    summed = _summed(targets)
    down = _counted(limits.max_down, "limits.max_down", _MAX_DOWN_FIX, summed, enrolled)
    failures = _counted(limits.max_failures, "limits.max_failures", _FAILURES_FIX, summed, enrolled)
    sizes, rounded = wave_sizes(limits.waves, len(targets))
    windows = parse_windows(limits.windows)
    rate = parse_rate(limits.rate) if limits.rate.strip() else None
    deadline_s = check_duration(limits.deadline_s, "limits.deadline_s", allow_zero=True)
    soak_s = check_duration(limits.soak_s, "limits.soak_s", allow_zero=True, longest_s=LONGEST_SOAK_S)
    drain_s = check_duration(
        limits.drain_timeout_s, "limits.drain_timeout_s", allow_zero=True, longest_s=LONGEST_DRAIN_S
    )
    words = [
        *down.words,
        *(f"failures, {word}" for word in failures.words),
        *_wave_words(sizes, rounded),
        *([f"starts at most {limits.rate.strip()}"] if rate is not None else []),
        *([f"ends {format_duration(deadline_s)} after submission at the latest"] if deadline_s else []),
        *(f"starts only in window {window.text}" for window in windows),
        *([f"a host counts as back after {format_duration(soak_s)} usable"] if soak_s else []),
    ]
    defaults = ResolvedLimits()
    return ResolvedLimits(
        domains=down.domains,
        total=down.total,
        starts_per_minute=rate,
        wave_sizes=sizes,
        max_failures=failures.total,
        max_failures_by_domain=failures.domains,
        attempts=_attempts(limits.attempts),
        windows=windows,
        soak_s=soak_s,
        drain_timeout_s=drain_s or defaults.drain_timeout_s,
        words=tuple(words),
    )


def effective_limit(domain: str, enrolled: int, budget: Budget | None, campaign_limit: int | None) -> EffectiveLimit:
    """The least of what the campaign and the domain's budget say; where neither says anything, one (law 2)."""
    count, rounding = (None, "") if budget is None else budget_count(domain, enrolled, budget)
    if campaign_limit is not None and (count is None or campaign_limit <= count):
        return EffectiveLimit(campaign_limit, "campaign", "")
    if count is not None:
        return EffectiveLimit(count, "budget", rounding)
    return EffectiveLimit(1, "default", "")


def budget_count(domain: str, enrolled: int, budget: Budget) -> tuple[int, str]:
    """A budget as a count of the domain's enrolled hosts, and its rounding in words (empty for a plain count)."""
    if budget.percent is not None:
        return percentage(budget.percent, domain).of(enrolled, "enrolled hosts")
    return budget.count or 0, ""


def narrow_first(domain: str) -> tuple[int, str]:
    """Order of domains: fabrics, racks, feeds, sites, then what belongs to no kind."""
    return _NARROW.get(domain.partition("/")[0], len(KINDS)), domain


def parse_budget(text: str, field: str = "budget") -> Budget | None:
    """Read "3", "5%" or "default" (no budget of its own: None); raises BadField."""
    if text.strip().lower() == "default":
        return None
    quantity = parse_quantity(text, field)
    if quantity.percent is not None:
        return Budget(percent=float(quantity.percent))
    return Budget(count=quantity.count)


def format_budget(budget: Budget | None) -> str:
    """Write as `parse_budget` reads it; a domain without a budget of its own reads "default"."""
    if budget is None:
        return "default"
    return str(budget.count) if budget.percent is None else str(percentage(budget.percent, "budget"))


def parse_rate(text: str, field: str = "limits.rate") -> float:
    """Read "10/min", "1/30s" or "100/h" as starts per minute; raises BadField."""
    matched = _RATE.fullmatch(text.strip())
    if not matched:
        raise BadField(field, text, "is not a rate", _RATE_FIX)
    starts, every = int(matched[1]), int(matched[2] or 1)
    if starts == 0 or every == 0:
        raise BadField(field, text, "is zero: nothing could ever start", _RATE_FIX)
    per_minute = starts / (every * _UNIT_MINUTES[matched[3]])
    if per_minute > MOST_STARTS_PER_MINUTE:
        raise BadField(field, text, f"is more than {MOST_STARTS_PER_MINUTE:.0f} a minute", "leave it out for no limit")
    if every * _UNIT_MINUTES[matched[3]] > 1440:
        raise BadField(field, text, "counts over more than a day", _RATE_FIX)
    return per_minute


def _summed(targets: Sequence[HostRecord]) -> _Targets:
    of_host = [host.domains for host in targets]
    in_kind = Counter(kind for names in of_host for kind in {name.partition("/")[0] for name in names})
    return _Targets(len(targets), frozenset(name for names in of_host for name in names), in_kind)


def _counted(texts: Sequence[str], field: str, fix: str, targets: _Targets, enrolled: Mapping[str, int]) -> _Counted:
    counted = _Counted({}, None, [])
    for term in _terms(texts, field, fix):
        if term.scope == TOTAL:
            total, rounding = term.quantity.of(targets.host_count, "targets")
            counted = counted._replace(total=total)
            counted.words.append(f"{TOTAL}: {rounding or total}")
        elif "/" in term.scope:
            _known(term, enrolled)
            _lower(counted, term, [term.scope], enrolled)
            if term.scope not in targets.domains:
                counted.words.append(f"{term.text} limits none of the targets: none belongs to {term.scope}")
        else:
            _each_of_kind(counted, term, targets, enrolled)
    return counted


def _terms(texts: Sequence[str], field: str, fix: str) -> list[_Term]:
    """Split `scope=quantity`; a bare quantity is of the total. The same scope twice is refused."""
    if len(texts) > MOST_TERMS:
        raise BadField(field, len(texts), f"limits are more than {MOST_TERMS}", "limit a kind of domain as a whole")
    terms: dict[str, _Term] = {}
    for index, text in enumerate(texts):
        path = f"{field}[{index}]"
        scope, equals, amount = text.strip().partition("=")
        scope = scope.strip()
        if not equals and field.endswith("max_failures"):
            scope, amount = TOTAL, text
        elif not equals:
            raise BadField(path, text, "does not say what it limits", fix)
        kind, slash, name = scope.partition("/")
        if kind not in KINDS and scope != TOTAL:
            raise BadField(path, text, f"limits {shown(kind)}, which is no kind of domain", fix)
        if slash and not name:
            raise BadField(path, text, f"names no {kind}", fix)
        if scope in terms:
            raise BadField(path, text, f"limits {scope} a second time", f"keep one of it and {terms[scope].text!r}")
        terms[scope] = _Term(path, text.strip(), scope, parse_quantity(amount, path))
    return list(terms.values())


def _known(term: _Term, enrolled: Mapping[str, int]) -> None:
    if term.scope in enrolled:
        return
    kind = term.scope.partition("/")[0]
    there = sorted(name for name in enrolled if name.startswith(f"{kind}/"))
    fix = (
        f"name one of {', '.join(there[:5])}{' …' if len(there) > 5 else ''}" if there else f"no host has a {kind} yet"
    )
    raise BadField(term.field, term.text, f"names {shown(term.scope)}, which no enrolled host belongs to", fix)


def _each_of_kind(counted: _Counted, term: _Term, targets: _Targets, enrolled: Mapping[str, int]) -> None:
    found = sorted(name for name in targets.domains if name.startswith(f"{term.scope}/"))
    if targets.host_count and not found:
        raise BadField(
            term.field,
            term.text,
            f"would limit nothing: none of the targets belongs to a {term.scope}",
            f"leave it out, or give the hosts their {term.scope} in the inventory",
        )
    _lower(counted, term, found, enrolled)
    if outside := targets.host_count - targets.in_kind[term.scope]:
        counted.words.append(f"{term.text} does not limit {outside} of the targets: they belong to no {term.scope}")


def _lower(counted: _Counted, term: _Term, domains: Sequence[str], enrolled: Mapping[str, int]) -> None:
    """Write limits down; where a kind and one of its domains are both limited, the smaller holds."""
    alike: dict[str, list[str]] = {}
    for domain in domains:
        count, rounding = term.quantity.of(enrolled.get(domain, 0), "enrolled hosts")
        alike.setdefault(rounding or str(count), []).append(domain)
        before = counted.domains.get(domain, count)
        counted.domains[domain] = min(before, count)
        if before != count:
            counted.words.append(f"{domain} is limited twice, to {before} and to {count}: {min(before, count)} holds")
    counted.words.extend(f"{_listed(names)}: {word}" for word, names in alike.items())


def _listed(names: Sequence[str]) -> str:
    """Write up to three names and count the rest: a fleet has thousands of racks, and the words are stored."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _wave_words(sizes: tuple[int, ...], rounded: tuple[str, ...]) -> list[str]:
    if not sizes:
        return []
    first = ", ".join(map(str, sizes[:6])) + (", …" if len(sizes) > 6 else "")
    return [f"{len(sizes)} waves of {first}" if len(sizes) > 1 else f"1 wave of {first}", *rounded]


def _attempts(asked: int) -> int:
    if asked == 0:
        return DEFAULT_ATTEMPTS
    if not 1 <= asked <= MOST_ATTEMPTS:
        fix = f"give 1 to {MOST_ATTEMPTS}, or 0 for the default of {DEFAULT_ATTEMPTS}"
        raise BadField("limits.attempts", asked, "is out of range", fix)
    return asked
