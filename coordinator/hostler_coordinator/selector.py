"""Resolves a selector to enrolled hosts, or says why it cannot; `hostlists` reads the expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hostler_contract.campaigns import Selector
from hostler_contract.hosts import HostRecord
from hostler_coordinator.hostlists import MOST_HOSTS, Pattern, parse_patterns
from hostler_coordinator.names import LABEL_KEY, LABEL_VALUE, natural_key, nearest, odd_characters
from hostler_coordinator.refusals import BadField

MOST_TERMS = 64
MOST_NAMED = 5
_ONE_OF = 'give host names ("gpu-[001-128]"), labels ("fabric=ib-a,rack!=r07") or "all", exactly one of them'
_LABEL_FIX = 'write terms such as "fabric=ib-a", "rack!=r07", "burn-in" (has the label) or "!burn-in"'


@dataclass(frozen=True, slots=True)
class Selection:
    """What a selector came to: at least one host, by name in natural order, none of them retired."""

    hosts: tuple[HostRecord, ...]
    retired: tuple[HostRecord, ...] = ()
    """Hosts that labels or "all" would have matched, were they not retired."""


@dataclass(frozen=True, slots=True)
class LabelTerm:
    """One condition on a host. Without a value: has the key at all (`negated`: has it not)."""

    text: str
    key: str
    value: str | None
    negated: bool

    def holds(self, host: HostRecord) -> bool:
        """True when the host meets it; a host without the key meets `key!=value`."""
        values = label_values(host, self.key)
        found = bool(values) if self.value is None else self.value in values
        return found is not self.negated


def select(selector: Selector, hosts: Sequence[HostRecord]) -> Selection:
    """Resolve `selector` among `hosts` (all enrolled, retired ones included). Raises BadField (laws 9 and 10)."""
    given = [name for name, said in _said(selector).items() if said]
    if not given:
        raise BadField("selector", "", "selects nothing: no hosts were given", _ONE_OF)
    if len(given) > 1:
        raise BadField("selector", " and ".join(given), "are given together", _ONE_OF)
    if selector.all:
        return _matching(hosts, lambda _: True, "selector.all", "all", "enrol or import hosts first")
    if selector.hosts:
        return Selection(_by_name(selector.hosts, hosts))
    return _by_labels(selector.labels, hosts)


def parse_labels(texts: Sequence[str], field: str = "selector.labels") -> tuple[LabelTerm, ...]:
    """Read label terms, several of which may stand in one text with commas; raises BadField."""
    terms: list[LabelTerm] = []
    for index, text in enumerate(texts):
        path = f"{field}[{index}]"
        if not text.strip(" \t\r\n,:;"):
            raise BadField(path, text, "selects nothing", _LABEL_FIX)
        terms += [_term(part.strip(), text, path) for part in text.split(",")]
        if len(terms) > MOST_TERMS:
            raise BadField(path, text, f"makes more than {MOST_TERMS} terms", "give fewer terms")
    return tuple(terms)


def label_values(host: HostRecord, key: str) -> tuple[str, ...]:
    """What a host has under a key, built-in keys first; a host has several under `feed`, and none is ()."""
    match key:
        case "feed":
            return host.feeds
        case "fabric" | "rack" | "site" | "model" | "name" | "id":
            value = getattr(host, key)
            return (value,) if value else ()
    return (host.labels[key],) if key in host.labels else ()


def _said(selector: Selector) -> dict[str, bool]:
    return {"hosts": bool(selector.hosts), "labels": bool(selector.labels), "all": selector.all}


def _matching(
    hosts: Sequence[HostRecord], wanted: Callable[[HostRecord], bool], field: str, text: str, fix: str
) -> Selection:
    matched = sorted((host for host in hosts if wanted(host)), key=lambda host: natural_key(host.name))
    retired = tuple(host for host in matched if host.retired)
    live = tuple(host for host in matched if not host.retired)
    if not live:
        also = f" but {len(retired)} retired ones" if retired else ""
        raise BadField(field, text, f"selects nothing: it matches no enrolled host{also}", fix)
    return Selection(live, retired)


def _by_labels(texts: Sequence[str], hosts: Sequence[HostRecord]) -> Selection:
    terms = parse_labels(texts)
    fix = "look at `hostler host list -o wide` for what hosts have"
    for term in terms:
        values = sorted({value for host in hosts for value in label_values(host, term.key)}, key=natural_key)
        if not values:
            fix = f"no host has {term.key!r} at all"
        elif term.value is not None and not term.negated and term.value not in values:
            near = nearest(term.value, values) or values[:MOST_NAMED]
            fix = f"no host has {term.text}; there is {', '.join(f'{term.key}={value}' for value in near)}"
    return _matching(
        hosts, lambda host: all(term.holds(host) for term in terms), "selector.labels", ",".join(texts), fix
    )


def _term(part: str, text: str, field: str) -> LabelTerm:
    if not part:
        raise BadField(field, text, "has an empty term between commas", "take the extra comma out")
    key, equals, value = part.partition("=")
    negated = key.endswith("!") if equals else key.startswith("!")
    key = (key.removesuffix("!") if equals else key.removeprefix("!")).strip()
    value = value.strip()
    if odd := odd_characters(key, "._/-"):
        raise BadField(field, text, f"has characters that no label key has ({odd})", _LABEL_FIX)
    if not LABEL_KEY.fullmatch(key):
        raise BadField(field, text, f"has {key!r} where a label key should be", _LABEL_FIX)
    if not equals:
        return LabelTerm(part, key, None, negated)
    if odd := odd_characters(value, " ._:/+@-"):
        raise BadField(field, text, f"has characters that no label value has ({odd})", _LABEL_FIX)
    if not LABEL_VALUE.fullmatch(value):
        raise BadField(field, text, f"has {value!r} where the value of {key!r} should be", _LABEL_FIX)
    return LabelTerm(part, key, value, negated)


def _by_name(texts: Sequence[str], hosts: Sequence[HostRecord]) -> tuple[HostRecord, ...]:
    if len(texts) > MOST_HOSTS:
        raise BadField("selector.hosts", len(texts), f"entries are more than {MOST_HOSTS}", "use a label, or all")
    patterns = _bounded_patterns(texts)
    known = {host.id: host for host in hosts}
    by_name = {host.name: host for host in hosts}
    if len(by_name) < len(hosts):
        _check_ambiguous(patterns, hosts)
    known.update(by_name)  # a name goes before another host's id
    found: dict[str, HostRecord] = {}
    for field, pattern in patterns:
        missing: list[str] = []
        for name in pattern.names():
            host = known.get(name)
            if host is None:
                missing.append(name)
            else:
                _take(host, name, field, found)
        if missing:
            raise _unknown(missing, field, by_name)
    return tuple(sorted(found.values(), key=lambda host: natural_key(host.name)))


def _bounded_patterns(texts: Sequence[str]) -> list[tuple[str, Pattern]]:
    """Read every expression and count before one name is written (FC-D03)."""
    patterns: list[tuple[str, Pattern]] = []
    total = 0
    for index, text in enumerate(texts):
        field = f"selector.hosts[{index}]"
        for pattern in parse_patterns(text, field):
            total += pattern.count()
            if total > MOST_HOSTS:
                reason = f"is too large: it brings the selection to {total} names, more than {MOST_HOSTS}"
                raise BadField(field, text, reason, "use a label, or all")
            patterns.append((field, pattern))
    return patterns


def _take(host: HostRecord, name: str, field: str, found: dict[str, HostRecord]) -> None:
    if host.id in found:
        raise BadField(field, name, "is named twice", "name each host once")
    if host.retired:
        reason = f"is retired under ticket {host.retired.ticket} by {host.retired.by}"
        raise BadField(field, name, reason, "leave it out")
    found[host.id] = host


def _unknown(missing: Sequence[str], field: str, by_name: dict[str, HostRecord]) -> BadField:
    near = nearest(missing[0], by_name)
    fix = f"did you mean {' or '.join(near)}?" if near else "look at `hostler host list` for the names there are"
    more = f" and {len(missing) - MOST_NAMED} more" if len(missing) > MOST_NAMED else ""
    verb = "is no enrolled host" if len(missing) == 1 else "are no enrolled hosts"
    return BadField(field, ", ".join(missing[:MOST_NAMED]) + more, verb, fix)


def _check_ambiguous(patterns: Sequence[tuple[str, Pattern]], hosts: Sequence[HostRecord]) -> None:
    ids: dict[str, list[str]] = {}
    for host in hosts:
        ids.setdefault(host.name, []).append(host.id)
    for field, pattern in patterns:
        for name in pattern.names():
            if len(ids.get(name, ())) > 1:
                raise BadField(field, name, f"is the name of several hosts ({', '.join(ids[name][:5])})", "use the id")
