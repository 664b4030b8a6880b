"""A worker program that follows a script instead of asking a BMC: for tests of the pool alone; run as a process.

The target's `address` is a JSON file with a list of steps; each request takes the first, the last one stays. A step
holds fields of the answer, or `hang`, `die` or `babble`. Requests are appended to the same path with `.log`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Serve until the parent closes the pipe."""
    for line in sys.stdin:
        request = json.loads(line)
        if "verb" not in request:
            continue
        script = Path(request["target"]["address"])
        steps = json.loads(script.read_text())
        step = steps[0]
        script.write_text(json.dumps(steps[1:] or steps))
        with Path(f"{script}.log").open("a") as log:
            log.write(json.dumps({"verb": request["verb"], "pid": os.getpid()}) + "\n")
        _play(request, step)


def _play(request: dict[str, Any], step: dict[str, Any]) -> None:
    number = request["id"]
    if step.get("hang"):
        time.sleep(3600)
    if step.get("die"):
        os._exit(3)
    if step.get("babble"):
        print("this is not JSON", flush=True)
        return
    answer: dict[str, Any] = {"ok": True, "verb": request["verb"], "state": "unknown", "fault": None, "conditions": []}
    answer |= {"serials": [], "events": []}
    if request["two_phase"]:
        print(json.dumps({"id": number, "event": "logged_in"}), flush=True)
        word = json.loads(sys.stdin.readline())
        if not word["go"]:
            answer |= {"ok": False, "withheld": word["why_not"]}
            print(json.dumps({"id": number, "event": "answer", "answer": answer}), flush=True)
            return
        answer["sent"] = True
    if "fault" in step:
        answer["ok"] = False
    print(json.dumps({"id": number, "event": "answer", "answer": answer | step}), flush=True)


if __name__ == "__main__":
    main()
