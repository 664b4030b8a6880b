"""Judges the fields of one inventory row and makes an entry of it; files and known hosts are other rooms' work."""

from __future__ import annotations

import hashlib
import ipaddress
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hostler_coordinator.inventory_files import Cell, Row
from hostler_coordinator.names import (
    BUILT_IN_KEYS,
    DOMAIN_NAME,
    HOST_NAME,
    LABEL_KEY,
    LABEL_VALUE,
    nearest,
    odd_characters,
)
from hostler_coordinator.refusals import BadField

MOST_LABELS = 64
MOST_FEEDS = 8
DEFAULT_PORTS = {"ipmi": 623, "redfish": 443}
SECRET = "(not shown)"  # noqa: S105 - what is shown in place of one

_SERIAL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9 ./_:+-]{0,62}[A-Za-z0-9])?")
_REFERENCE = re.compile(r"file:/[A-Za-z0-9._/@+-]{1,255}|env:[A-Za-z_][A-Za-z0-9_]{0,127}")
_BMC_URL = re.compile(
    r"(?P<protocol>ipmi|redfish)://(?P<address>\[[0-9A-Fa-f:.]+\]|[^\[\]/@:\s]+)(:(?P<port>[0-9]+))?/?"
)
_PLACEHOLDER = re.compile(
    r"to be filled by o\.?e\.?m\.?|default string|system serial number|not specified|not applicable|not available"
    r"|none|null|n/?a|unknown|empty|(?P<same>.)(?P=same)*|0?123456789?0?",
    re.IGNORECASE,
)
_CREDENTIALS_FIX = 'give a reference, "file:/etc/hostler/bmc/NAME" or "env:NAME"; an inventory holds no secrets'


@dataclass(frozen=True, slots=True)
class Entry:
    """One host as the file has it, checked. `fields` has only what the file says: what it leaves out stays as it is.

    Keys of `fields` are those of HostRecord; `bmc` is a mapping of what was given of it, or None for "has none".
    """

    line: int
    id: str
    """As given; empty when the file gives none."""
    name: str
    serial: str
    fields: Mapping[str, Any]

    @property
    def derived_id(self) -> str:
        """The id of a host that is new: the one given, else one that depends on the chassis serial alone."""
        return self.id or "h" + hashlib.sha256(self.serial.upper().encode()).hexdigest()[:12]


def make_entry(row: Row, problems: list[BadField]) -> Entry | None:
    """Check a row. Every bad field adds a problem that names line and field; then there is no entry."""
    before = len(problems)
    fields: dict[str, Any] = {}
    for key, cell in row.cells.items():
        try:
            _read(key, cell, fields)
        except BadField as problem:
            problems.append(problem)
    labels = fields.get("labels", {})
    if len(labels) > MOST_LABELS:
        problems.append(_bad(row.line, "labels", len(labels), f"labels are more than {MOST_LABELS}", "give fewer"))
    # A field that is there but bad has its own problem already.
    if not _stated(row, "name"):
        problems.append(_bad(row.line, "name", "", "is missing", "give the host a name"))
    if not _stated(row, "id") and not _stated(row, "serial"):
        fix = "give the chassis serial, by which the host keeps its identity, or an id"
        problems.append(_bad(row.line, "serial", "", "is missing, and so is id", fix))
    if len(problems) > before:
        return None
    stated_id, name, serial = fields.pop("id", ""), fields["name"], fields.get("serial", "")
    if not serial:
        fields.pop("serial", None)  # an empty serial is one that is not told
    if fields.get("bmc") == {}:
        fields["bmc"] = None
    return Entry(row.line, stated_id, name, serial, fields)


def _stated(row: Row, key: str) -> bool:
    return key in row.cells and bool(row.cells[key].texts)


def _read(key: str, cell: Cell, fields: dict[str, Any]) -> None:
    section, dot, inner = key.partition(".")
    if section == "labels":
        labels = fields.setdefault("labels", {})
        if dot:
            _read_label(inner, cell, labels)
        else:
            labels.update(_split_labels(cell))
    elif section == "bmc":
        given = fields.setdefault("bmc", {})
        if dot:
            _read_bmc(inner, cell, given)
        elif cell.texts:
            _read_bmc_url(cell, given)
    elif key == "feeds":
        fields["feeds"] = _feeds(cell)
    elif key in _CHECKS:
        fields[key] = _checked(key, cell, _CHECKS[key])
    else:
        near = nearest(key, [*_CHECKS, "feeds", "bmc", "labels"], 1)
        fix = f"did you mean {near[0]}?" if near else "put it under labels, or take it out"
        raise _bad(cell.line, key, SECRET if _secretive(key) else " ".join(cell.texts), "is no field of a host", fix)


def _read_bmc(inner: str, cell: Cell, given: dict[str, Any]) -> None:
    key = f"bmc.{inner}"
    if inner not in _BMC_CHECKS:
        near = nearest(inner, _BMC_CHECKS, 1)
        fix = _CREDENTIALS_FIX if _secretive(inner) or not near else f"did you mean bmc.{near[0]}?"
        raise _bad(cell.line, key, SECRET, "is no field of a BMC", fix)
    text = _checked(key, cell, _BMC_CHECKS[inner])
    if text:
        _give(cell, given, inner, int(text) if inner == "port" else text)


def _read_bmc_url(cell: Cell, given: dict[str, Any]) -> None:
    """The short form, `ipmi://10.0.3.1:623`; it holds no credentials, so a text that is not quite it is not shown."""
    found = _BMC_URL.fullmatch(cell.texts[0]) if len(cell.texts) == 1 else None
    if found is None or _address(address := found["address"].strip("[]")) or _port(found["port"] or "1"):
        reason = "is neither a set of fields nor ipmi://ADDRESS[:PORT] or redfish://ADDRESS[:PORT]"
        raise _bad(cell.line, "bmc", SECRET, reason, "give bmc.address and bmc.credentials")
    port = int(found["port"] or DEFAULT_PORTS[found["protocol"]])
    for inner, value in (("protocol", found["protocol"]), ("address", address), ("port", port)):
        _give(cell, given, inner, value)


def _give(cell: Cell, given: dict[str, Any], inner: str, value: int | str) -> None:
    if given.setdefault(inner, value) != value:
        raise _bad(cell.line, f"bmc.{inner}", value, f"is not what bmc says, {given[inner]}", "keep one of them")


def _read_label(name: str, cell: Cell, labels: dict[str, str]) -> None:
    key = f"labels.{name}"
    if not LABEL_KEY.fullmatch(name):
        raise _bad(cell.line, key, name, "is no label key", "use letters, digits and ._/-, a letter first")
    if name in BUILT_IN_KEYS:
        raise _bad(cell.line, key, name, f"hides the host's own {name}", "take another key")
    if value := _checked(key, cell, _label_value):
        labels[name] = value


def _split_labels(cell: Cell) -> dict[str, str]:
    """The one-column form of CSV: `tier=gold;owner=ml`."""
    labels: dict[str, str] = {}
    for part in ";".join(cell.texts).split(";"):
        name, equals, value = part.strip().partition("=")
        if equals:
            _read_label(name.strip(), Cell(cell.line, (value.strip(),)), labels)
        elif name:
            raise _bad(cell.line, "labels", part, "is no label", 'write "key=value;key=value"')
    return labels


def _feeds(cell: Cell) -> tuple[str, ...]:
    feeds = tuple(part for text in cell.texts for part in re.split(r"[;\s]+", text) if part)
    for feed in feeds:
        if problem := _domain(feed):
            raise _bad(cell.line, "feeds", feed, *problem)
    if len(set(feeds)) < len(feeds):
        raise _bad(cell.line, "feeds", ";".join(feeds), "names a feed twice", "name each feed once")
    if len(feeds) > MOST_FEEDS:
        raise _bad(cell.line, "feeds", len(feeds), f"feeds are more than {MOST_FEEDS}", "name fewer")
    return feeds


_Check = Callable[[str], tuple[str, str] | None]
"""Takes a text that is not empty; returns what is wrong with it and the fix, or None."""


def _checked(key: str, cell: Cell, check: _Check) -> str:
    if len(cell.texts) > 1:
        raise _bad(cell.line, key, "a list", "takes one value", "write one")
    text = cell.texts[0] if cell.texts else ""
    if text and (problem := check(text)):
        hide = key == "bmc.credentials" or "@" in text
        raise _bad(cell.line, key, SECRET if hide else text, *problem)
    return text


def _domain(text: str) -> tuple[str, str] | None:
    return None if DOMAIN_NAME.fullmatch(text) else _name_problem(text)


def _host_name(text: str) -> tuple[str, str] | None:
    return None if HOST_NAME.fullmatch(text) else _name_problem(text)


def _name_problem(text: str) -> tuple[str, str]:
    odd = odd_characters(text, "._-")
    reason = f"has odd characters ({odd})" if odd else "is no name"
    return reason, "use at most 128 letters, digits and ._-, with a letter or digit at both ends"


def _label_value(text: str) -> tuple[str, str] | None:
    if LABEL_VALUE.fullmatch(text):
        return None
    odd = odd_characters(text, " ._:/+@-")
    reason = f"has odd characters ({odd})" if odd else "is no value"
    return reason, "use at most 128 letters, digits, blanks and ._:/+@-, with a letter or digit at both ends"


def _serial(text: str) -> tuple[str, str] | None:
    if _PLACEHOLDER.fullmatch(text):
        return "is a placeholder that many machines share", "give the real chassis serial, or an id"
    if not _SERIAL.fullmatch(text):
        return "is no serial number", "give it as the chassis reports it"
    return None


def _uuid(text: str) -> tuple[str, str] | None:
    try:
        number = uuid.UUID(text).int
    except ValueError:
        return "is no UUID", "give it as the BMC tells it, 8-4-4-4-12 hexadecimal digits"
    if number in {0, (1 << 128) - 1}:
        return "is a placeholder that many machines share", "give the real UUID, or leave it out"
    return None


def _address(text: str) -> tuple[str, str] | None:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        # All digits and dots, yet no address: a mistyped one, never a name.
        if not HOST_NAME.fullmatch(text) or not re.search(r"[A-Za-z]", text):
            return "is neither an IP address nor a host name", "give it without scheme, user or port"
    return None


def _port(text: str) -> tuple[str, str] | None:
    good = re.fullmatch(r"[0-9]{1,5}", text) and 1 <= int(text) <= 65_535
    return None if good else ("is no port", "give a number from 1 to 65535")


def _protocol(text: str) -> tuple[str, str] | None:
    return None if text in DEFAULT_PORTS else ("is no BMC protocol", 'use "ipmi" or "redfish"')


def _reference(text: str) -> tuple[str, str] | None:
    if _REFERENCE.fullmatch(text) and "/../" not in f"{text}/":
        return None
    return "is not a reference to credentials", _CREDENTIALS_FIX


def _secretive(key: str) -> bool:
    return bool(re.search(r"pass|pw|secret|token|user|key|cred", key, re.IGNORECASE))


def _bad(line: int, key: str, value: object, reason: str, fix: str) -> BadField:
    return BadField(f"line {line}: {key}", value, reason, fix)


_CHECKS: dict[str, _Check] = {
    "id": _host_name,
    "name": _host_name,
    "fabric": _domain,
    "rack": _domain,
    "site": _domain,
    "model": _label_value,
    "address": _address,
    "serial": _serial,
    "system_uuid": _uuid,
}
_BMC_CHECKS: dict[str, _Check] = {
    "protocol": _protocol,
    "address": _address,
    "port": _port,
    "credentials": _reference,
    "serial": _serial,
}
