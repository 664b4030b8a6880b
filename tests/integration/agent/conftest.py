"""Makes the fake coordinator and the machines available to the tests of this folder."""

from __future__ import annotations

from integration.agent.agent_fixtures import certificates, coordinator, machines

__all__ = ["certificates", "coordinator", "machines"]
