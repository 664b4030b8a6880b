"""Says what is wrong with settings, in the same words for both programs, with the nearest name; reads no file."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, get_args

from pydantic import BaseModel

if TYPE_CHECKING:
    from pydantic import ValidationError

SHOWN_CHARACTERS = 60
_IN_WORDS = {
    "missing": "is missing, and has no default",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "string_pattern_mismatch": "does not have the form {pattern}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "value_error": "{error}",
}
_BY_SIGN = (
    ("int_", "must be a whole number"),
    ("float_", "must be a number"),
    ("finite", "must be a number"),
    ("bool_", "must be true or false"),
    ("string_type", "must be text"),
    ("tuple_type", "must be a list"),
    ("list_type", "must be a list"),
    ("path_", "must be a path"),
    ("model_", "must be a section with settings of its own"),
    ("dict_type", "must be a section with settings of its own"),
)


def in_words(error: ValidationError, model: type[BaseModel]) -> list[str]:
    """One clause per wrong setting, each beginning with its path such as `bmc.poll_s`."""
    return [f"{_path(one)}: {_reason(one, model)}" for one in map(dict, error.errors())]


def nearest(name: str, known: list[str]) -> str:
    """`; did you mean X?` when a name that exists is near, else nothing."""
    near = difflib.get_close_matches(name, known, 1, 0.6) or [one for one in known if name and one.startswith(name)]
    return f"; did you mean {near[0]}?" if near else ""


def _path(one: Mapping[str, Any]) -> str:
    text = ""
    for part in one["loc"]:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text or "the file"


def _reason(one: Mapping[str, Any], model: type[BaseModel]) -> str:
    kind = one["type"]
    if kind == "extra_forbidden":
        return _no_such(one, model)
    context: Mapping[str, Any] = one.get("ctx") or {}
    words = _IN_WORDS.get(kind, "").format_map({name: _number(value) for name, value in context.items()})
    words = words or next((text for sign, text in _BY_SIGN if kind.startswith(sign)), one["msg"].lower())
    if kind in {"missing", "value_error"}:
        return words
    if one["input"] in ("", [], ()):
        return "may not be empty"
    if kind == "string_pattern_mismatch":
        return f"{_shown(one['input'])} {words}"
    words += f", not {_shown(one['input'])}"
    if kind == "literal_error":
        choices = [part.strip("' ") for part in str(context["expected"]).replace(" or ", ",").split(",")]
        words += nearest(str(one["input"]), choices)
    return words


def _no_such(one: Mapping[str, Any], model: type[BaseModel]) -> str:
    """The same section's names first; then a section where a setting of this very name, or nearly, belongs."""
    *sections, name = (str(part) for part in one["loc"])
    place: type[BaseModel] | None = model
    for section in sections:
        place = _section(place, section) if place is not None else None
    here = list(place.model_fields) if place is not None else []
    near = nearest(name, here).replace("mean ", f"mean {'.'.join(sections)}." if sections else "mean ", 1)
    if not near:
        everywhere = {path.rpartition(".")[2]: path for path in _paths(model)}
        close = difflib.get_close_matches(name, list(everywhere), 1, 0.8)
        near = f"; did you mean {everywhere[close[0]]}?" if close else ""
    return f"there is no such setting{near}"


def _paths(model: type[BaseModel], before: str = "") -> Iterator[str]:
    for name in model.model_fields:
        yield f"{before}{name}"
        if (inner := _section(model, name)) is not None:
            yield from _paths(inner, f"{before}{name}.")


def _section(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    """The model of a section; None for a plain setting."""
    field = model.model_fields.get(name)
    kinds = (field.annotation, *get_args(field.annotation)) if field is not None else ()
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def _number(value: Any) -> Any:
    return f"{value:g}" if isinstance(value, float) else value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
