"""What is read of a machine and of other programs' words; unknown stays unknown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostler_agent.checks import PostBootChecks, judge_command, judge_target
from hostler_agent.children import Ended, run_child
from hostler_agent.client import to_request
from hostler_agent.decide import ActState, Blocker, BlockerKind, condition_of
from hostler_agent.excerpt import excerpt
from hostler_agent.host import Machine, boot, busy, facts, inhibitors, reboot
from hostler_agent.operations import OPERATIONS
from hostler_agent.session import Heartbeat
from hostler_contract.hosts import Usability
from hostler_contract.work import OperationKind
from unit.agent.situations import NOW, order, situation

BOOT_ID = "5f1c2d3e-0a1b-4c2d-8e3f-001122334455"
INHIBITED = 'Operation inhibited by "svc" (PID 1844 "installer", user root), reason is "update in progress".'
FAILED = "Failed to set wall message, ignoring: Connection timed out\nCall to Reboot failed: Connection timed out\n"


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [(f"{BOOT_ID}\n", BOOT_ID), (BOOT_ID.upper(), BOOT_ID), ("", ""), ("\n", ""), ("garbage", ""), (BOOT_ID[:-1], "")],
)
def test_a_boot_id_is_read_whole_or_not_at_all(tmp_path: Path, text: str, expected: str) -> None:
    write(tmp_path, boot.BOOT_ID_PATH, text)
    assert boot.boot_id(tmp_path) == expected


def test_a_missing_boot_id_is_unknown(tmp_path: Path) -> None:
    assert boot.boot_id(tmp_path) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "SoftRebootsCount=1\nUserspaceTimestampMonotonic=77\nSystemState=running\n",
            boot.ManagerState(1, "77", shutting_down=False),
        ),
        ("UserspaceTimestampMonotonic=77\nSystemState=stopping\n", boot.ManagerState(-1, "77", shutting_down=True)),
        ("SoftRebootsCount=\nUserspaceTimestampMonotonic=0\n", boot.ManagerState()),
        ("", boot.ManagerState()),
    ],
)
def test_fc_a07_the_managers_words(text: str, expected: boot.ManagerState) -> None:
    assert boot.parse_manager_state(text) == expected


@pytest.mark.parametrize(
    ("words", "state", "text"),
    [
        (INHIBITED, ActState.INHIBITED, "inhibited by installer (pid 1844): update in progress"),
        (INHIBITED.split(",", 1)[0] + ", user root).", ActState.INHIBITED, None),
        ("Call to Reboot failed: Interactive authentication required.", ActState.NOT_PERMITTED, None),
        ("Call to Reboot failed: Access denied", ActState.NOT_PERMITTED, None),
        (" ".join(FAILED.split()), ActState.FAILED, " ".join(FAILED.split())),
        ("systemctl: not found", ActState.FAILED, "systemctl: not found"),
    ],
)
def test_fc_a27_what_a_refused_command_means(words: str, state: ActState, text: str | None) -> None:
    found = inhibitors.judge_refusal(words)
    assert found.state is state
    assert text is None or found.text == text


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        (Ended(0), ActState.ACCEPTED),
        (Ended(143), ActState.ACCEPTED),
        (Ended(-15), ActState.ACCEPTED),
        (Ended(None, problem="no end after 30 s"), ActState.ACCEPTED),
        (Ended(None, problem="systemctl: Cannot allocate memory", started=False), ActState.FAILED),
        (Ended(1, errors=FAILED), ActState.FAILED),
        (Ended(1, errors=INHIBITED), ActState.INHIBITED),
        (Ended(127, problem="systemctl: not found", started=False), ActState.FAILED),
        (Ended(-9), ActState.FAILED),
    ],
)
def test_fc_a12_how_the_reboot_command_ended(ended: Ended, state: ActState) -> None:
    assert reboot.judge_end(ended).state is state


def test_fc_a13_the_words_of_a_failed_command_are_kept() -> None:
    found = reboot.judge_end(Ended(1, errors=FAILED))
    assert found.text == (
        "Failed to set wall message, ignoring: Connection timed out Call to Reboot failed: Connection timed out"
    )


def test_fc_d10_people_on_the_host_read_campaign_and_actor() -> None:
    asked = order(campaign_id="c-7", actor="ada", reason="new\nkernel \x1b[31m")
    assert reboot.full_command(["systemctl", "reboot"], asked) == [
        "systemctl",
        "reboot",
        "--message=hostler: reboot for campaign c-7, asked by ada: new kernel  [31m",
        "--check-inhibitors=yes",
    ]
    assert reboot.full_command(["systemctl", "reboot"], order(force=True))[-1] == "--check-inhibitors=no"
    assert reboot.full_command(["site-reboot"], asked) == ["site-reboot"]


def test_fc_a07_people_read_that_only_user_space_restarts_and_inhibitors_are_heeded() -> None:
    asked = order(operation=OperationKind.SOFT_REBOOT, campaign_id="c-7", actor="ada")
    assert reboot.full_command(["systemctl", "soft-reboot"], asked) == [
        "systemctl",
        "soft-reboot",
        "--message=hostler: soft reboot for campaign c-7, asked by ada",
        "--check-inhibitors=yes",
    ]


@pytest.mark.parametrize("operation", [OperationKind.REBOOT, OperationKind.SOFT_REBOOT])
async def test_fc_a07_each_operation_gives_its_own_command(tmp_path: Path, operation: OperationKind) -> None:
    machine = Machine(
        sysroot=tmp_path,
        reboot_command=["sh", "-c", "echo reboot"],
        soft_reboot_command=["sh", "-c", "echo soft_reboot"],
        command_deadline_s=5.0,
        gpu_processes_block=False,
        people_block=False,
    )
    found = await OPERATIONS[operation].act(machine, order(operation=operation))
    assert (found.state, found.text) == (ActState.ACCEPTED, operation.value)


def test_only_locks_that_block_a_shutdown_count() -> None:
    rows = [
        ["shutdown:sleep", "installer", "update in progress", "block", 0, 1844],
        ["shutdown", "NetworkManager", "", "delay", 0, 1],
        ["sleep", "laptop", "", "block", 0, 2],
    ]
    text = json.dumps({"type": "a(ssssuu)", "data": [rows]})
    (found,) = inhibitors.parse_list(text)
    assert found.who == "inhibited by installer (pid 1844): update in progress"
    assert found.kind is BlockerKind.INHIBITOR


@pytest.mark.parametrize("text", ["", "{}", '{"data": []}', '{"data": [[["shutdown"]]]}', "[]"])
def test_what_is_no_list_of_locks_is_none(text: str) -> None:
    assert inhibitors.parse_list(text) == []


def process(root: Path, pid: int, name: str, *targets: str) -> None:
    write(root, f"proc/{pid}/comm", name + "\n")
    (root / f"proc/{pid}/fd").mkdir()
    for number, target in enumerate(targets):
        (root / f"proc/{pid}/fd/{number}").symlink_to(target)


def test_processes_that_hold_a_gpu_are_named_and_daemons_are_not(tmp_path: Path) -> None:
    process(tmp_path, 10, "train", "/dev/null", "/dev/nvidia0")
    process(tmp_path, 11, "nvidia-persiste", "/dev/nvidia0")
    process(tmp_path, 12, "monitor", "/dev/nvidiactl", "/dev/nvidia-uvm")
    process(tmp_path, 13, "sshd", "/dev/null")
    (tmp_path / "proc/14").mkdir()
    (found,) = busy.gpu_processes(tmp_path)
    assert found.who == "GPU in use by train (pid 10)"


def test_many_processes_are_counted(tmp_path: Path) -> None:
    for pid in range(10, 20):
        process(tmp_path, pid, "train", "/dev/nvidia3")
    (found,) = busy.gpu_processes(tmp_path)
    assert found.who.endswith("and 5 more")
    assert busy.gpu_processes(tmp_path / "nowhere") == []


@pytest.mark.parametrize("serial", ["To Be Filled By O.E.M.", "Default string", "None", " ", "0"])
def test_placeholders_of_vendors_are_unknown(tmp_path: Path, serial: str) -> None:
    write(tmp_path, "sys/class/dmi/id/chassis_serial", serial)
    write(tmp_path, "sys/class/dmi/id/product_serial", "S12345\n")
    write(tmp_path, "sys/class/dmi/id/product_uuid", "03000200-0400-0500-0006-000700080009")
    write(tmp_path, "sys/class/dmi/id/product_name", "DGX")
    write(tmp_path, "proc/uptime", "12.5 1.0\n")
    found = facts.read_facts(tmp_path, hostname="h1", address="10.0.0.1", soft_reboots=-1)
    assert (found.chassis_serial, found.system_uuid, found.model, found.uptime_s) == ("S12345", "", "DGX", 12.5)
    assert found.cpu_count > 0


async def test_a_machine_without_systemd_has_its_boot_id_and_the_rest_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, boot.BOOT_ID_PATH, BOOT_ID)
    monkeypatch.setenv("PATH", str(tmp_path))
    machine = Machine(
        sysroot=tmp_path,
        reboot_command=("systemctl", "reboot"),
        command_deadline_s=5.0,
        gpu_processes_block=True,
        people_block=False,
    )
    reading = await machine.read()
    assert (reading.boot_id, reading.soft_reboots, reading.shutting_down) == (BOOT_ID, -1, False)
    assert await machine.blockers() == ()
    assert (await machine.reboot(order())).state is ActState.FAILED


# --- checks and children ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (Ended(0), Usability.USABLE),
        (Ended(1, "no link"), Usability.UNUSABLE),
        (Ended(125), Usability.UNUSABLE),
        (Ended(126), Usability.UNKNOWN),
        (Ended(127), Usability.UNKNOWN),
        (Ended(139), Usability.UNKNOWN),
        (Ended(-11), Usability.UNKNOWN),
        (Ended(None, problem="no end after 60 s"), Usability.UNKNOWN),
    ],
)
def test_fc_a04_what_the_end_of_a_check_means(ended: Ended, expected: Usability) -> None:
    assert judge_command("check", ended).usability is expected


@pytest.mark.parametrize(
    ("ended", "expected"),
    [
        (Ended(0, "active\n"), Usability.USABLE),
        (Ended(3, "inactive\n"), Usability.STARTING),
        (Ended(3, "activating\n"), Usability.STARTING),
        (Ended(3, "failed\n"), Usability.UNUSABLE),
        (Ended(4, "", "no such bus"), Usability.UNKNOWN),
        (Ended(127, problem="systemctl: not found"), Usability.UNKNOWN),
    ],
)
def test_the_boot_target(ended: Ended, expected: Usability) -> None:
    assert judge_target("boot-complete.target", ended).usability is expected


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        ([], Usability.USABLE),
        ([["true"], ["true"]], Usability.USABLE),
        ([["true"], ["sh", "-c", "echo no link; exit 2"]], Usability.UNUSABLE),
        ([["no-such-program"]], Usability.UNKNOWN),
        ([["sh", "-c", "kill -SEGV $$"]], Usability.UNKNOWN),
        ([["sleep", "20"]], Usability.UNKNOWN),
    ],
)
async def test_fc_a04_checks_as_real_children(commands: list[list[str]], expected: Usability) -> None:
    checks = PostBootChecks(boot_target="", commands=commands, deadline_s=0.5)
    assert (await checks.run()).usability is expected


async def test_a_child_that_hangs_is_given_up_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; wait"
    ended = await run_child(["sh", "-c", script], deadline_s=0.5)
    assert ended == Ended(None, problem="sh: no end after 0.5 s")
    pid = int((tmp_path / "pid").read_text())
    for _ in range(200):
        if not exists(pid):
            return
        await run_child(["sleep", "0.02"], deadline_s=5.0)
    pytest.fail("a child of the child is left")


def exists(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_child_that_never_stops_talking_costs_no_memory() -> None:
    ended = await run_child(["sh", "-c", "head -c 1000000 /dev/zero"], deadline_s=5.0)
    assert (ended.status, len(ended.output)) == (0, 64 * 1024)


async def test_a_child_gets_its_input_and_may_ignore_it() -> None:
    assert (await run_child(["cat"], deadline_s=5.0, given=b"hello")).output == "hello"
    assert (await run_child(["true"], deadline_s=5.0, given=b"x" * 100_000)).status == 0


SIX_MIB = ["sh", "-c", "head -c 6291456 /dev/zero | tr '\\0' x; exit 1"]


async def test_fc_d07_six_mib_of_detail_are_cut_and_marked_as_cut() -> None:
    verdict = await PostBootChecks(boot_target="", commands=[SIX_MIB], deadline_s=20.0).run()
    assert verdict.usability is Usability.UNUSABLE
    assert verdict.reason.endswith("xxx … (cut: 6291456 bytes in all)")
    assert len(verdict.reason) < 1200


def test_fc_d07_nothing_that_an_agent_reports_is_longer_than_a_report_may_be() -> None:
    people = tuple(Blocker(BlockerKind.PERSON, f"logged in: {'z' * 300} {number}") for number in range(500))
    told = condition_of(situation(blockers=people, usability=Usability.UNKNOWN, usability_reason="é" * 70_000), NOW)
    assert told.blocked_by.endswith("bytes in all)")
    assert told.usability_reason.endswith(" … (cut: 140000 bytes in all)")
    assert to_request(Heartbeat(sequence=1, condition=told)).ByteSize() < 16_384


@pytest.mark.parametrize("length", [0, 1, 999, 1000])
def test_what_fits_is_left_as_it_is(length: int) -> None:
    assert excerpt("y" * length) == "y" * length


def test_what_is_cut_says_so_and_fits() -> None:
    assert excerpt("y" * 1001).endswith("yyy … (cut: 1001 bytes in all)")
    assert len(excerpt("y" * 1001)) == 1000
    assert excerpt("short", left_out_bytes=95) == "short … (cut: 100 bytes in all)"
    assert excerpt(excerpt("y" * 5000)) == excerpt("y" * 5000)
