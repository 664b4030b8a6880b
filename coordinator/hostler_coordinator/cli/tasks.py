"""The verbs of tasks: one host's share of a campaign, step by step."""

from __future__ import annotations

from typing import Annotated

import typer

from hostler_contract import codec
from hostler_contract.pb.hostler.v1 import campaign_pb2 as pb
from hostler_contract.pb.hostler.v1 import deadletter_pb2
from hostler_contract.views import DeadLetter, Task
from hostler_contract.work import DeadLetterState, ResolutionKind, TaskState
from hostler_coordinator.cli import api, flags
from hostler_coordinator.cli.campaign_screens import TASK_COLUMNS, task_row, task_screen
from hostler_coordinator.cli.deadletters import retry
from hostler_coordinator.cli.errors import Problem, usage
from hostler_coordinator.cli.run import Run
from hostler_coordinator.cli.verbs import noun, verb

app = noun("task", "One host's share of a campaign: its state, its evidence, another try.")

Which = Annotated[str, typer.Argument(metavar="CAMPAIGN[/HOST]", help="The campaign, or the task's own id.")]
OfHost = Annotated[str, typer.Argument(metavar="[HOST]", help="The host, unless the id names it.", show_default=False)]


def _split(which: str, host: str) -> tuple[str, str]:
    campaign, slash, named = which.partition("/")
    if not campaign or bool(slash and named) == bool(host):
        raise usage(
            "a task is named by its campaign and its host", flag="HOST", fix="write CAMPAIGN HOST or CAMPAIGN/HOST"
        )
    return campaign, host or named


@verb(app, "list", "hostler task list c-7f3a --state dead_letter", "hostler task list c-7f3a -o json")
def list_verb(
    run: Run,
    campaign: flags.CampaignId,
    state: Annotated[
        list[TaskState] | None, typer.Option("--state", help="Only tasks in this state; may be repeated.")
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="HOST", help="Only this host's.", show_default=False)] = "",
) -> None:
    """List a campaign's tasks."""
    names = [f"TASK_STATE_{item.name}" for item in state or ()]
    request = pb.ListTasksRequest(campaign_id=campaign, states=names, host=host)
    found = list(run.pages(api.LIST_TASKS, request, "tasks", Task))
    now = run.list_clock()
    rows = [task_row(item, now) for item in found] if run.output.for_people else []
    run.output.show(found, [item.id for item in found], lambda: run.output.table(TASK_COLUMNS, rows, empty="no tasks"))


def _get(run: Run, campaign: str, host: str) -> Task:
    answer = run.call(api.GET_TASK, pb.GetTaskRequest(campaign_id=campaign, host=host))
    return codec.from_message(Task, answer.task)


@verb(app, "show", "hostler task show c-7f3a gpu-003", "hostler task show c-7f3a/gpu-003 -o json | jq .evidence")
def show_verb(run: Run, which: Which, host: OfHost = "") -> None:
    """Show one task with everything that was seen of it, each fact dated."""
    found = _get(run, *_split(which, host))
    now = run.list_clock()
    run.output.show(found, [found.id], lambda: task_screen(found, now, run.output))


@verb(app, "retry", 'hostler task retry c-7f3a gpu-003 --reason "BMC password corrected" --wait')
def retry_verb(
    run: Run,
    *,
    which: Which,
    host: OfHost = "",
    reason: flags.Reason = "",
    key: flags.Key = None,
    wait: flags.Wait = False,
    dry_run: flags.DryRun = False,
) -> None:
    """Try a task again that ended as a dead letter: opens a campaign linked to the first."""
    task = _get(run, *_split(which, host))
    if task.state is not TaskState.DEAD_LETTER:
        raise Problem(
            "FAILED_PRECONDITION",
            f"task {task.id} is {task.state}, not a dead letter; there is nothing to try again",
            fix=f"hostler host why {task.host}",
        )
    retry(run, [_letter_of(run, task)], reason=reason, key=key, wait=wait, dry_run=dry_run)


def _closed(letter: DeadLetter) -> Problem:
    """What to do instead about a dead letter that a person has dealt with."""
    done = letter.resolution
    if letter.state is DeadLetterState.RETRIED or done is None:
        text, fix = f"was retried by {letter.retried_by}", f"hostler campaign show {letter.retried_by}"
    elif done.kind is ResolutionKind.RMA:
        text, fix = f"was resolved as rma under {done.ticket}", f"hostler host rebind {letter.host}, with its new board"
    else:
        text, fix = f"was resolved as {done.kind} by {done.by}", f"hostler host reboot {letter.host}, to begin anew"
    return Problem("FAILED_PRECONDITION", f"dead letter {letter.id} {text}", fix=fix)


def _letter_of(run: Run, task: Task) -> str:
    """Find the open dead letter of a task."""
    request = deadletter_pb2.ListDeadLettersRequest(campaign_id=task.campaign_id)
    for letter in run.pages(api.LIST_DEAD_LETTERS, request, "dead_letters", DeadLetter):
        if letter.host_id == task.host_id:
            if letter.state is DeadLetterState.OPEN:
                return letter.id
            raise _closed(letter)
    raise Problem("NOT_FOUND", f"task {task.id} has no dead letter", fix="hostler deadletter list")
