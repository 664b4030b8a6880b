"""Simulated machines under real agents, for a fleet of processes on one computer; nothing here is part of the daemon.

One single-threaded parent is all the machines: their power, their boots, their faults, and the ground truth of what
happened to them. It forks one process per host that runs the real agent over a simulated `Host`. The formats:

- `DIR/machines.json`: a list of objects `{host, host_id, endpoints, tls: {ca, certificate, key, server_name},
  boot_seconds, power, faults, serial, address, agent}`; `agent` holds any further settings of agent.yaml.
- `DIR/machines.fifo` (a FIFO) and `DIR/machines.sock` (a datagram socket) take lines: `HOST power on|off|reset|soft`,
  `HOST fault KIND`, `HOST crash`.
- `DIR/effects.jsonl`: one line per effect: `{"effect", "host", "boot_id", "cause", "t", "task", "token"}`.
- `DIR/agents.json`: host -> pid of its agent, renewed when one changes (of 200 machines within 0.1 s).
- `DIR/hosts/HOST/`: `power` (1 or 0), `faults` (one word a line), `journal.json`, `agent.log`.
"""

from __future__ import annotations
