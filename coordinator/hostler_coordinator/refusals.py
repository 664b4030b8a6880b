"""What the API says no with: bad fields, failed preconditions, unknown names; normal flow stays a value."""

from __future__ import annotations

from collections.abc import Sequence

SHOWN_CHARACTERS = 80


class BadField(ValueError):
    """One field of a request cannot be used; nothing has been changed.

    `field` is the path as in the API (`limits.max_down[1]`), `value` what was given, `reason` a clause without
    full stop, `fix` an instruction in the imperative.
    """

    def __init__(self, field: str, value: object, reason: str, fix: str) -> None:
        super().__init__(field, value, reason, fix)
        self.field = field
        self.value = value
        self.reason = reason
        self.fix = fix

    def __str__(self) -> str:
        """Write as one sentence; a long or odd value is shortened and escaped."""
        return f"{self.field}: {shown(self.value)} {self.reason}; {self.fix}"


class BadFields(ValueError):
    """Several fields cannot be used, as in a file with bad lines; nothing has been changed. At least one problem."""

    def __init__(self, problems: Sequence[BadField]) -> None:
        super().__init__(problems)
        self.problems = tuple(problems)

    def __str__(self) -> str:
        """Write one problem per line."""
        return "\n".join(map(str, self.problems))


class Refused(Exception):
    """A precondition does not hold. `code` is stable, `holder` stands in the way, `since` is epoch seconds."""

    def __init__(
        self, code: str, subject: str, reason: str, *, holder: str = "", since: float | None = None, fix: str = ""
    ) -> None:
        super().__init__(code, subject, reason)
        self.code = code
        self.subject = subject
        self.holder = holder
        self.reason = reason
        self.since = since
        self.fix = fix

    def __str__(self) -> str:
        """Write as one sentence with the holder and the next step; `since` is left to the edge that knows the zone."""
        held = f" (held by {self.holder})" if self.holder else ""
        return f"{self.subject}: {self.reason}{held}" + (f"; {self.fix}" if self.fix else "")


class NotFound(Exception):
    """Nothing of this kind has this name; `hint` names what is near, or how to list what there is."""

    def __init__(self, kind: str, name: str, hint: str = "") -> None:
        super().__init__(kind, name, hint)
        self.kind = kind
        self.name = name
        self.hint = hint

    def __str__(self) -> str:
        """Write as one sentence."""
        return f"there is no {self.kind} {shown(self.name)}" + (f"; {self.hint}" if self.hint else "")


class AlreadyDifferent(Exception):
    """The key was used before, with another request; `what` names the key's owner and first use."""

    def __init__(self, key: str, what: str, fix: str = "use a new key for a new request") -> None:
        super().__init__(key, what, fix)
        self.key = key
        self.what = what
        self.fix = fix

    def __str__(self) -> str:
        """Write as one sentence."""
        return f"key {shown(self.key)} was used for another request ({self.what}); {self.fix}"


class Unavailable(Exception):
    """It cannot be done now, through no fault of the caller: no leader, no store.

    `reason` is a whole clause, its time included; `since` is the same time in epoch seconds. `in_doubt`: what was asked
    for may have been done, so that only what can be repeated may be asked for again unseen.
    """

    def __init__(
        self,
        reason: str,
        since: float | None = None,
        retry_after_s: float = 1.0,
        *,
        code: str = "unavailable",
        fix: str = "",
        in_doubt: bool = False,
    ) -> None:
        super().__init__(reason, since, retry_after_s)
        self.reason = reason
        self.since = since
        self.retry_after_s = retry_after_s
        self.code = code
        self.fix = fix
        self.in_doubt = in_doubt

    def __str__(self) -> str:
        """Write the reason."""
        return self.reason


def shown(value: object) -> str:
    """Quote a value for a message: control characters escaped, at most 80 characters of it."""
    text = value if isinstance(value, str) else repr(value)
    cut = text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"
    return repr(cut)
