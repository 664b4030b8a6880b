"""Writes docs/cli.md from the commands themselves; a test keeps the page fresh. No text of a command is written here.

Renew it with `python -m hostler_coordinator.cli.manual > docs/cli.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import typer.main

from hostler_coordinator.cli.app import app
from hostler_coordinator.cli.profile import ENVIRONMENT
from hostler_coordinator.cli.verbs import SHARED

HEAD = """# The command line

`hostler NOUN VERB` is an ordinary client of the public gRPC API. This page is generated from the commands
(`python -m hostler_coordinator.cli.manual > docs/cli.md`); a test keeps it fresh. `--help` says the same.

## Connecting

A profile file names the coordinators and the caller's certificate. It is looked for at `--profile FILE`,
`HOSTLER_PROFILE`, then `~/.config/hostler/profile.yaml`; paths in it may be relative to its own folder.

```yaml
endpoints: [coordinator-1.example:7443, coordinator-2.example:7443]
ca: ca.pem
cert: alice.pem
key: alice.key
```

Every endpoint is tried in turn within one time-out (`--timeout`, 10 s unless given), also while a leader is being
elected or the store does not answer; a line on standard error says so after 2 s. What may have been carried out
already is sent again only if twice is the same as once: by its nature, or by its `--key`. Removing a hold or a
host and asking a BMC are not, and the error then says that it may have been done.

While the store is away or nobody leads, any coordinator answers `status`, `host why`, lists and shows from its own copy
of the records: `status` marks what is missing and ends with 0, `host why` says since when nothing is started, and the
others warn on standard error from when their answer is. What only a leader hears is then `unknown`. Whatever changes
something is refused, with exit status 5: nothing was changed.

Plaintext is refused, except to
127.0.0.0/8 with `--insecure-loopback`. Flags win over the environment, the environment over the file.

"""

FORMATS = """## Answers

`-o table` (the default) and `-o wide` are for people; `-o json`, `-o yaml` and `-o name` for scripts. With `-o json`
standard output is exactly one JSON document, or one per line for streams (`campaign watch`, `audit export`), with the
field names of the API; moments are RFC 3339 in UTC, lists are arrays. Warnings go to standard error; questions,
progress and hints go there too, and only to a terminal. Ages are counted from the coordinator's clock.

Tables fit the terminal: a column that has no room beside the others goes below its row, as `title: value`, and none is
left out. `-o wide` adds columns. Where standard output is no terminal, every row and every sentence is one line.
Whatever is wrong with a command line is told at once, before anything is asked of a coordinator.

An error is `{"error": {"code", "message", "fields": [{"field", "message"}], "holder", "fix"}}`, with `reason` (a stable
code), `since` and more where the coordinator says so. `message` says what happened, `fix` what to do next. When no
coordinator answers, `endpoints` lists what each of them said, and `transport` keeps the transport's own words.

| Exit status | Means |
|---|---|
| 0 | done |
| 1 | the work ended badly: `--wait` or `watch` on a campaign that did not end as succeeded |
| 2 | wrong usage |
| 3 | not found |
| 4 | refused: conflict, precondition, hold, permission, a BMC that refuses the password, or a person said no |
| 5 | unavailable, or no answer in time |
| 130 | interrupted; the campaign goes on |
| 141 | the reader of a pipe has gone |

## Selecting hosts

Names and ranges (`gpu-[001-128]`), labels (`-l fabric=ib-a,rack!=r07`), a file (`--from-file hosts.txt`, one expression
per line, `#` starts a comment, `-` is standard input), or `--all`. Nothing else means all, and a blank selector is
refused. A script needs `--yes`, and above the size limit `--expect-count N`.

## Completion

`hostler --install-completion` sets it up for the shell in use (bash, zsh, fish, PowerShell);
`hostler --show-completion` prints the script instead, for a package or a site's own profile:

```sh
hostler --show-completion bash > ~/.local/share/bash-completion/completions/hostler
```

"""


def page() -> str:
    """Write the whole page."""
    return "".join((HEAD, _environment(), FORMATS, _shared(), "## Commands\n", *_commands()))


def _environment() -> str:
    rows = "".join(f"| `{name}` | {text} |\n" for name, text in ENVIRONMENT.items())
    return f"| Variable | Holds |\n|---|---|\n{rows}\n"


def _shared() -> str:
    verb = walk(typer.main.get_command(app))[0][1]
    rows = "".join(_option_row(option) for option in verb.params if option.name in SHARED)
    return f"## Flags of every command\n\nBefore the noun or after the verb.\n\n| Flag | Does |\n|---|---|\n{rows}\n"


def walk(command: Any, words: tuple[str, ...] = ("hostler",)) -> list[tuple[tuple[str, ...], Any]]:
    """List every command that is no group, with the words that call it."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return [(words, command)]
    return [leaf for name, child in inner.items() for leaf in walk(child, (*words, name))]


def _commands() -> Iterator[str]:
    for words, command in walk(typer.main.get_command(app)):
        text, _, example = (command.help or "").partition("\b\nExample:\n")
        text, kept, lines = text.partition("\b\n")
        text = f"{text}```yaml\n{lines.strip()}\n```" if kept else text
        arguments = [option for option in command.params if option.param_type_name == "argument"]
        yield f"\n### {' '.join(words)}\n\n{text.strip()}\n\n"
        yield "```sh\n" + "".join(f"{line.strip()}\n" for line in example.strip().splitlines()) + "```\n"
        options = [option for option in command.params if option not in arguments and option.name not in SHARED]
        rows = [_argument_row(option) for option in arguments] + [_option_row(option) for option in options]
        if rows:
            yield "\n| Argument or flag | Does |\n|---|---|\n" + "".join(rows)


def _argument_row(option: Any) -> str:
    return f"| `{_cell(option.metavar or option.name.upper())}` | {_cell(option.help or '')} |\n"


def _option_row(option: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*option.opts, *option.secondary_opts))
    return f"| {names} | {_cell(option.help or '')} |\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    sys.stdout.write(page())
