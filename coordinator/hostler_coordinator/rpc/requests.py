"""Requests whose fields are enums, instants or messages, as models the codec can fill; plain ones are read in place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from pydantic import ValidationError

from hostler_contract.campaigns import CampaignState, Selector
from hostler_contract.codec import UnknownEnumValueError, from_message
from hostler_contract.hosts import BmcRef, HoldKind
from hostler_contract.moments import Instant
from hostler_contract.shapes import Value
from hostler_contract.views import BmcVerb
from hostler_contract.work import DeadLetterState, ResolutionKind, TaskState
from hostler_coordinator.refusals import BadField, BadFields

if TYPE_CHECKING:
    from google.protobuf.message import Message
    from google.protobuf.timestamp_pb2 import Timestamp

V = TypeVar("V", bound=Value)
L = TypeVar("L", bound="Listing")


class Lister(Protocol):
    """A service that lists."""

    def as_of(self) -> float:
        """When what is listed now was true, epoch seconds."""
        ...


class Listing(Protocol):
    """A page of a list."""

    @property
    def as_of(self) -> Timestamp:
        """When it was true."""
        ...


class CampaignStates(Value):
    """Of ListCampaignsRequest."""

    states: tuple[CampaignState, ...] = ()


class TaskStates(Value):
    """Of ListTasksRequest."""

    states: tuple[TaskState, ...] = ()


class DeadLetterStates(Value):
    """Of ListDeadLettersRequest."""

    states: tuple[DeadLetterState, ...] = ()


class Selected(Value):
    """Of every request that selects hosts; without a selector it selects nothing, which the service refuses."""

    selector: Selector = Selector()


class MaySelect(Value):
    """Of ListHostsRequest, where no selector means all."""

    selector: Selector | None = None


class Rebinding(Value):
    """Of RebindHostRequest."""

    bmc: BmcRef | None = None


class HoldWanted(Value):
    """Of AddHoldRequest."""

    selector: Selector = Selector()
    kind: HoldKind = HoldKind.HANDS_OFF
    until: Instant | None = None


class ProbeWanted(Value):
    """Of ProbeBmcRequest."""

    verb: BmcVerb | None = None


class ResolutionWanted(Value):
    """Of ResolveDeadLetterRequest."""

    kind: ResolutionKind | None = None


def dated(answer: L, service: Lister) -> L:
    """The same page of a list, with the moment at which it was true."""
    answer.as_of.FromMicroseconds(round(service.as_of() * 1e6))
    return answer


def read(model: type[V], message: Message, prefix: str = "") -> V:
    """Fill a model from a request; what does not fit is refused by field path."""
    try:
        return from_message(model, message)
    except UnknownEnumValueError as error:
        raise BadField(prefix or "request", str(error), "is not known here", "upgrade the coordinator") from error
    except ValidationError as error:
        raise BadFields(
            [
                BadField(_path(prefix, item["loc"]), item["input"], item["msg"].lower(), "give a value of that form")
                for item in error.errors()
            ]
        ) from error


def _path(prefix: str, loc: tuple[int | str, ...]) -> str:
    """`limits.max_down[1]` for ("limits", "max_down", 1)."""
    path = prefix
    for part in loc:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path or "request"
