"""Who is at the other end of a call: by its certificate (see `pki`), or by its word where loopback runs without TLS."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from hostler_coordinator.pki import DEFAULT_REGION, BadCertificate, Identity, Role, peer_identity

PLAINTEXT_CLAIM = "hostler-plaintext-identity"
"""Metadata that names the caller of a plaintext server: `host/h-1`, `coordinator/c1`, `operator/alice`."""

_CLAIM = re.compile(r"(?P<role>host|coordinator|operator)/(?P<name>[\w.@-]{1,128})")
_ROLES = {"host": Role.AGENT, "coordinator": Role.COORDINATOR, "operator": Role.OPERATOR}
_WORDS = {Role.AGENT: "host", Role.COORDINATOR: "coordinator", Role.OPERATOR: "operator", Role.ETCD: "etcd"}


class UnidentifiedError(Exception):
    """The peer does not say who it is; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class IdentityReader:
    """Reads the identity of a call's peer. `plaintext` is for a server on a loopback address only."""

    region: str = DEFAULT_REGION
    plaintext: bool = False

    def read(self, context: Any) -> Identity:
        """The peer of a call, of this region; raises UnidentifiedError."""
        if self.plaintext:
            return self._claimed(context)
        try:
            identity = peer_identity(context.auth_context() or {})
        except BadCertificate as error:
            raise UnidentifiedError(str(error)) from error
        if identity is None:
            raise UnidentifiedError("a client certificate is needed")
        if identity.region != self.region:
            raise UnidentifiedError(f"the client certificate is of region {identity.region}, this is {self.region}")
        return identity

    def _claimed(self, context: Any) -> Identity:
        claim = dict(context.invocation_metadata() or ()).get(PLAINTEXT_CLAIM, "operator/local")
        found = _CLAIM.fullmatch(str(claim))
        if found is None:
            raise UnidentifiedError(f"{PLAINTEXT_CLAIM} must be ROLE/NAME")
        return Identity(_ROLES[found["role"]], found["name"], self.region)


def described(identity: Identity) -> str:
    """`host/h-1`, as messages and audit name a peer."""
    return f"{_WORDS[identity.role]}/{identity.name}"
