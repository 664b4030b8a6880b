"""Every bound that decisions depend on, each with its unit and default; values only, reading a file is config's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Policy:
    """Bounds of planner and ladder. Defaults are for real iron; `hostler dev up` scales them to simulated machines."""

    heartbeat_interval_s: float = 5.0
    """Interval the agents are told."""
    silence_s: float = 15.0
    """Not heard for this long: the host is silent (suspect)."""
    dead_after_s: float = 120.0
    """Silent for this long without work of ours: the host is charged as dead."""
    leader_grace_s: float = 30.0
    """A new leader judges no silence before this (law 4)."""
    rescue_after_s: float = 120.0
    """Silent for this long before its reboot was let go: the agent counts as hung and a rescue may be considered."""
    pull_timeout_s: float = 300.0
    """From reservation to the agent's readiness, drain not included."""
    stop_timeout_s: float = 60.0
    """For an agent to undo its drain mark when work is taken back."""
    go_lifetime_s: float = 10.0
    """A GO expires after this (law 3)."""
    shutdown_timeout_s: float = 900.0
    """How long a host may stay up after it accepted the reboot."""
    boot_allowance_s: float = 1800.0
    """From GO to the new boot, until the model's own figure has been learned."""
    boot_allowance_least_s: float = 300.0
    """A learned allowance is never shorter."""
    boots_to_learn: int = 5
    usable_timeout_s: float = 900.0
    """From a new boot id to post-boot checks passed."""
    refusals: int = 100
    """Refusals (busy, inhibited) before a person is called."""
    refusal_pause_s: float = 60.0
    backoff_first_s: float = 30.0
    backoff_cap_s: float = 600.0
    rescues: int = 2
    """Power intents per task."""
    intent_lifetime_s: float = 480.0
    """A power intent expires after this (law 3)."""
    bmc_session_timeout_s: float = 65.0
    """A successor waits this much longer: a dead worker's BMC session may still carry a command."""
    rescues_at_once: int = 8
    """Power cycles in progress over the whole region."""
    site_boot_ceiling: int = 100
    """Hosts of one site being worked on at once, over all campaigns."""
    mass_silence_hosts: int = 3
    mass_silence_fraction: float = 0.2
    mass_silence_window_s: float = 60.0
    mass_reboot_window_s: float = 60.0
    confirm_above_hosts: int = 50
    """Larger campaigns need a person's yes or the exact count."""
    blocked_alert_s: float = 900.0
    """A campaign blocked by a full budget for this long calls a person."""
    retention_s: float = 30 * 86400.0
    """Ended campaigns are kept whole this long, then as one record with a summary."""
    retention_check_s: float = 60.0
    """Every this often one batch of records that are kept no longer is deleted."""
