"""A site's drain hook for the tests: keeps one mark in a file, and is empty when a file `busy` is gone."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def main() -> None:
    folder, asked = Path(sys.argv[1]), json.load(sys.stdin)
    mark, busy = folder / "mark", folder / "busy"
    owner = mark.read_text() if mark.exists() else ""
    if asked["verb"] == "mark" and not owner:
        owner = asked["owner"]
        mark.write_text(owner)
    if asked["verb"] == "undo" and owner == asked["owner"]:
        mark.unlink()
        owner = ""
    with (folder / "calls").open("a") as calls:
        calls.write(f"{asked['verb']} {asked['owner']}\n")
    print(json.dumps({"empty": not busy.exists(), "owner": owner, "text": "job 17 runs" if busy.exists() else ""}))


if __name__ == "__main__":
    main()
