"""`python -m bench [NAME] [--small] [--runs N]`: runs benchmarks, one JSON object per figure on standard output."""

from __future__ import annotations

import argparse
import json
import statistics
import sys

from bench import p1

BENCHES = {"p1": p1}


def main() -> int:
    """Run what was asked for; returns the exit status."""
    parser = argparse.ArgumentParser(prog="bench", description="Figures of Hostler on this machine.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(BENCHES)}; all when none is given")
    parser.add_argument("--small", action="store_true", help="a size that proves that it works, not a figure to quote")
    parser.add_argument("--runs", type=int, default=5, help="runs per figure (1 with --small)")
    asked = parser.parse_args()
    for name in asked.names or BENCHES:
        if name not in BENCHES:
            print(f"there is no benchmark {name!r}; there are {', '.join(BENCHES)}", file=sys.stderr)
            return 2
        shape = BENCHES[name].shape(small=asked.small)
        values = [BENCHES[name].run(shape) for _ in range(1 if asked.small else asked.runs)]
        line = {
            "bench": name,
            **BENCHES[name].FIGURE,
            **shape,
            "runs": len(values),
            "median": round(statistics.median(values), 4),
            "min": round(min(values), 4),
            "max": round(max(values), 4),
        }
        print(json.dumps(line), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
