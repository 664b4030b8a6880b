"""Arguments and flags that several commands share, declared once; what they do is decided where they are used."""

from __future__ import annotations

from typing import Annotated

import typer

HostName = Annotated[str, typer.Argument(metavar="HOST", help="Name or id of the host.")]
CampaignId = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="Id of the campaign.")]
Hosts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[HOSTS]...", help="Host names and ranges, such as gpu-[001-128].", show_default=False),
]
Labels = Annotated[
    list[str] | None,
    typer.Option(
        "--label", "-l", metavar="TERMS", help="Labels that must hold, such as fabric=ib-a,rack!=r07; may be repeated."
    ),
]
FromFile = Annotated[
    str | None, typer.Option("--from-file", metavar="FILE", help="File with one host expression per line; - for stdin.")
]
All = Annotated[bool, typer.Option("--all", help="Every host; nothing else means all.", show_default=False)]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done and change nothing.", show_default=False)
]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for the audit log.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.", show_default=False)]
Wait = Annotated[
    bool, typer.Option("--wait", help="Stay until it has ended; leaving does not stop it.", show_default=False)
]
Key = Annotated[
    str | None,
    typer.Option("--key", metavar="KEY", help="Idempotency key: the same key never starts the same work twice."),
]
