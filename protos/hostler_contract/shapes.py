"""The contract's two kinds of frozen model: strict values on the wire, lenient records in etcd; no models here."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """Part of a message; unknown fields are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Record(BaseModel):
    """Stored in etcd; fields that a newer version added are read past, so that both versions can run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    schema_version: int = 1
