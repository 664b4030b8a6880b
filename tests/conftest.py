"""Wires the shared fixtures in; each lives in a module of its own beside this file, and none is written here."""

from __future__ import annotations

from importlib.util import find_spec

pytest_plugins = [name for name in ("etcd_fixtures", "bmc_fixtures", "fleet_fixtures") if find_spec(name)]
