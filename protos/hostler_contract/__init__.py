"""What crosses the wire or goes to etcd, and nothing else: no behaviour beyond validation, no I/O."""

from __future__ import annotations
