"""Puts the nouns together into one command; what they do lives in the rooms named after them."""

from __future__ import annotations

import typer

from hostler_coordinator.cli import (
    audits,
    campaigns,
    deadletters,
    domains,
    holds,
    hosts,
    standing,
    stands_apart,
    tasks,
)
from hostler_coordinator.cli.verbs import root_flags

NOUNS = (
    campaigns.app,
    tasks.app,
    hosts.app,
    domains.fabric_app,
    domains.domain_app,
    deadletters.app,
    holds.app,
    audits.app,
    standing.brake_app,
)

app = typer.Typer(
    name="hostler",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.callback()(root_flags)
for noun_app in NOUNS:
    app.add_typer(noun_app)
standing.register(app)
stands_apart.register(app)
