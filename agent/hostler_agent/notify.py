"""Tells systemd that the agent is ready, alive and what it waits for; without systemd it says nothing."""

from __future__ import annotations

import os
import socket


class SystemdNotifier:
    """sd_notify over the socket named in NOTIFY_SOCKET (sd_notify(3)); `@` stands for an abstract address."""

    def __init__(self, address: str | None = None) -> None:
        given = os.environ.get("NOTIFY_SOCKET", "") if address is None else address
        self._address = "\0" + given[1:] if given.startswith("@") else given
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) if given else None
        if self._socket:
            self._socket.setblocking(False)

    def ready(self) -> None:
        """READY=1."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """STATUS=, one line."""
        self._send("STATUS=" + " ".join(text.split())[:500])

    def alive(self) -> None:
        """WATCHDOG=1."""
        self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """STOPPING=1."""
        self._send("STOPPING=1")

    def close(self) -> None:
        """Give the socket back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, text: str) -> None:
        if self._socket is None:
            return
        try:
            self._socket.sendto(text.encode(), self._address)
        except OSError:
            return  # the manager is busy or gone; the next one gets through
