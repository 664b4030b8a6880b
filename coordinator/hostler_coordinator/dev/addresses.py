"""A block of loopback addresses per fleet, so that several can stand side by side; what stands there is not here."""

from __future__ import annotations

import random
import socket
from dataclasses import dataclass

from hostler_coordinator.dev.shape import BMC_PORT, COORDINATOR_PORT

CLAIM_PORT = 6229
BLOCKS = range(16, 250)
ATTEMPTS_MAX = 60


class NoFreeBlock(RuntimeError):
    """Every block that was tried is taken."""


@dataclass(frozen=True, slots=True)
class Block:
    """127.NUMBER.0.0/16, ours for as long as the socket is open: a second claim of the same block is refused."""

    number: int
    claim: socket.socket

    def release(self) -> None:
        """Let others have it."""
        self.claim.close()


def claim_block(chance: random.Random) -> Block:
    """Claim a block in which nothing listens where a fleet would. Raises NoFreeBlock."""
    for number in chance.sample(BLOCKS, ATTEMPTS_MAX):
        claim = _listening(f"127.{number}.0.1", CLAIM_PORT)
        if claim is None:
            continue
        if _is_free(number):
            return Block(number, claim)
        claim.close()
    raise NoFreeBlock(f"no free block of loopback addresses found in {ATTEMPTS_MAX} attempts; end other fleets first")


def _is_free(number: int) -> bool:
    probe = _listening(f"127.{number}.0.11", COORDINATOR_PORT)
    if probe is None:
        return False
    probe.close()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
        try:
            datagrams.bind((f"127.{number}.1.1", BMC_PORT))
        except OSError:
            return False
    return True


def _listening(address: str, port: int) -> socket.socket | None:
    opened = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        opened.bind((address, port))
        opened.listen(1)
    except OSError:
        opened.close()
        return None
    return opened
