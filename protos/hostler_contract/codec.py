"""The only converter between contract models, protobuf messages and etcd records; nothing here decides anything.

A model and its message have the same field names. Rules: enums by name (`TASK_STATE_ACTING` and `"acting"`), instants
as Timestamp, None as absence, tuples as repeated, dicts as maps.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.timestamp_pb2 import Timestamp
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from google.protobuf.message import Message

    from hostler_contract.shapes import Record

M = TypeVar("M", bound=BaseModel)
P = TypeVar("P", bound="Message")
R = TypeVar("R", bound="Record")

_TIMESTAMP = Timestamp.DESCRIPTOR.full_name


class UnknownEnumValueError(ValueError):
    """A message carries an enum number that this version does not know."""


class UnreadableRecordError(ValueError):
    """A stored record does not fit its model; `key` says which."""


def to_record(record: Record) -> bytes:
    """Write a record as JSON for etcd; the field `schema_version` says how to read it."""
    return record.model_dump_json(exclude_defaults=False).encode()


def from_record(model: type[R], raw: bytes, key: str = "") -> R:
    """Read a record back; raises UnreadableRecordError naming the key."""
    try:
        return model.model_validate_json(raw)
    except ValueError as error:
        msg = f"stored record {key or model.__name__} cannot be read: {error}"
        raise UnreadableRecordError(msg) from error


def to_message(value: BaseModel, message_type: Callable[[], P]) -> P:
    """Convert a model to its protobuf message."""
    message = message_type()
    fill_message(value, message)
    return message


def fill_message(value: BaseModel, message: Message) -> None:
    """Write a model's fields into a message of the same shape."""
    fields = message.DESCRIPTOR.fields_by_name
    for name in type(value).model_fields:
        item = getattr(value, name)
        if item is not None and name in fields:
            _set(message, fields[name], item)


def _set(message: Message, field: Any, item: Any) -> None:
    if field.is_repeated:
        _fill_many(getattr(message, field.name), field, item)
    elif field.message_type is not None:
        _fill_one(getattr(message, field.name), field, item)
    elif field.enum_type is not None:
        setattr(message, field.name, _enum_number(field.enum_type, item))
    else:
        setattr(message, field.name, item)


def _fill_many(target: Any, field: Any, items: Any) -> None:
    if _is_map(field):
        target.update(items)
        return
    for item in items:
        if field.message_type is not None:
            _fill_one(target.add(), field, item)
        elif field.enum_type is not None:
            target.append(_enum_number(field.enum_type, item))
        else:
            target.append(item)


def _fill_one(target: Any, field: Any, item: Any) -> None:
    if field.message_type.full_name == _TIMESTAMP:
        target.FromNanoseconds(round(item * 1_000_000) * 1000)
        return
    target.SetInParent()
    fill_message(item, target)


def from_message(model: type[M], message: Message) -> M:
    """Convert a message to its model; raises pydantic's ValidationError or UnknownEnumValueError."""
    return model.model_validate(_plain(model, message))


def _plain(model: type[BaseModel], message: Message) -> dict[str, Any]:
    fields = message.DESCRIPTOR.fields_by_name
    values: dict[str, Any] = {}
    for name in model.model_fields:
        field = fields.get(name)
        if field is not None and (item := _get(message, field, _inner_type(model, name))) is not None:
            values[name] = item
    return values


def _get(message: Message, field: Any, inner: Any) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        if _is_map(field):
            return dict(value)
        return tuple(_read_one(field, item, inner) for item in value)
    if field.has_presence and not message.HasField(field.name):
        return None
    if field.enum_type is not None and value == 0:
        return None
    return _read_one(field, value, inner)


def _read_one(field: Any, value: Any, inner: Any) -> Any:
    if field.message_type is not None:
        if field.message_type.full_name == _TIMESTAMP:
            return value.ToMicroseconds() / 1e6
        return _plain(inner, value)
    if field.enum_type is not None:
        return _enum_word(field.enum_type, value)
    return value


def _is_map(field: Any) -> bool:
    """Whether a repeated field is a map; asked of those only, as reading a descriptor's options is slow."""
    is_message = field.type == FieldDescriptor.TYPE_MESSAGE
    return bool(is_message and field.message_type.GetOptions().map_entry)


@lru_cache(maxsize=1024)
def _inner_type(model: type[BaseModel], name: str) -> Any:
    """The type inside `X | None`, `tuple[X, ...]` or `Annotated[X, ...]` of a model's field."""
    return _unwrap(model.model_fields[name].annotation)


def _unwrap(annotation: Any) -> Any:
    origin = get_origin(annotation)
    if origin in {Union, UnionType}:
        return _unwrap(next(arg for arg in get_args(annotation) if arg is not NoneType))
    if origin is tuple:
        return _unwrap(get_args(annotation)[0])
    return annotation


@lru_cache(maxsize=256)
def _enum_prefix(full_name: str) -> str:
    """`hostler.v1.TaskState` -> `TASK_STATE_`, as buf's rules name enum values."""
    word = full_name.rsplit(".", 1)[-1]
    parts = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in word)
    return parts.lstrip("_") + "_"


def _enum_number(enum: Any, item: StrEnum | str) -> int:
    number: int = enum.values_by_name[_enum_prefix(enum.full_name) + str(item).upper()].number
    return number


def _enum_word(enum: Any, number: int) -> str:
    value = enum.values_by_number.get(number)
    if value is None:
        msg = f"{enum.full_name} has no value {number}"
        raise UnknownEnumValueError(msg)
    name: str = value.name
    return name.removeprefix(_enum_prefix(enum.full_name)).lower()
