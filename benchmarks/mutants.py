"""Which changes of the formulas do tests not notice? The table of what `make mutants` found.

    python benchmarks/mutants.py

mutmut leaves functions with a decorator as they are, so that in its copy nothing remembers its answers (Makefile).
A test that takes too long counts as noticed, a change that no test runs as not noticed. Tests that compare kernels
need a compiler, which cannot read mutants; most of what survives in `scale` they notice (`tests/test_kernels.py`).

Most else that survives changes no answer. In `rows_needed`, `_needed`, `quantile_ranks` and `near` the range
in which the answer is sought becomes wider; in `spread` an origin moves that only saves digits; in `scale` another unit
of large samples cancels; bounds that answers are cut at only catch rounding; in `coverage` a level is kept that is the
smaller of two anyway; in `scores.py` numbers that are float64 become float64, or are copied. Elsewhere < turns into <=
where both never happen.
"""

from __future__ import annotations

import json
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from provenance import save

ROOT = Path(__file__).parents[1]
MUTANTS = ROOT / "mutants" / "mutants" / "src"
USES = [  # what is changed, and what should notice; `[tool.mutmut]` in pyproject.toml
    *(f"pimeter.{name}" for name in ("_kernels.reference", "bandwidth", "conformal.guarantee", "coverage", "scores")),
    *(f"tests.test_{name}" for name in ("bandwidth", "coverage", "scores")),
]
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
        fraction = f"{found['killed'] / tried:.1%}" if tried else ""
        lines.append(f"| {name} | {len(codes):,} | {counts} | {fraction} |")
        for key, code in codes.items():
            if MEANING.get(code) in {"survived", "no test"}:
                function = key.rpartition("__mutmut_")[0].rpartition(".")[2].removeprefix("x_").replace("xǁ", "")
                left[f"{name}: `{function.replace('ǁ', '.')}`"] += 1
    lines.append("\nNot killed, by function:\n")
    lines += [f"- {name}: {count}" for name, count in left.items()] or ["- none"]
    text = "\n".join([*lines, ""])
    save(__file__, text, packages=["mutmut", "pytest", "hypothesis"], uses=USES)
    print(text)


if __name__ == "__main__":
    main()
