"""Which changes of the formulas do tests not notice? The table of what `make mutants` found.

    python benchmarks/mutants.py

mutmut leaves functions with a decorator as they are: `promise`, `quantile_ranks`, `ruler` and what else remembers its
answers. A test that takes too long counts as noticed, a change that no test reaches as not noticed. Most of what
survives changes no answer: in `rows_needed`, `_shares` and `near` it makes the range wider in which the answer is
sought, in `spread` it moves an origin that only saves digits, elsewhere it turns < into <= where both never happen.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "mutants" / "src"
RESULTS = Path(__file__).parent / "results" / "mutants.md"
MEANING = {0: "survived", 5: "no test", 33: "no test", None: "not tried"}  # all else: a test failed or took too long


def main() -> None:
    lines = [
        "# Do tests notice?\n",
        f"`make mutants`, mutmut {version('mutmut')}. What counts is said in `benchmarks/mutants.py`.\n",
        "| file | mutants | killed | survived | no test | not tried | killed of those tried |",
        "|---|---|---|---|---|---|---|",
    ]
    left: Counter[str] = Counter()
    for path in sorted(MUTANTS.rglob("*.meta")):
        codes = json.loads(path.read_text())["exit_code_by_key"]
        if not codes:
            continue
        found = Counter(MEANING.get(code, "killed") for code in codes.values())
        tried = len(codes) - found["not tried"]
        name = path.relative_to(MUTANTS / "pimeter").with_suffix("")
        counts = " | ".join(f"{found[kind]:,}" for kind in ("killed", "survived", "no test", "not tried"))
        share = f"{found['killed'] / tried:.1%}" if tried else ""
        lines.append(f"| {name} | {len(codes):,} | {counts} | {share} |")
        for key, code in codes.items():
            if MEANING.get(code) in {"survived", "no test"}:
                function = key.rpartition("__mutmut_")[0].rpartition(".")[2].removeprefix("x_").replace("xǁ", "")
                left[f"{name}: `{function.replace('ǁ', '.')}`"] += 1
    lines.append("\nNot killed, by function:\n")
    lines += [f"- {name}: {count}" for name, count in left.items()] or ["- none"]
    text = "\n".join([*lines, ""])
    RESULTS.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
