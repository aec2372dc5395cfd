"""Draw the pictures of measure.md by running its code: python docs/draw.py."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = Path(__file__).parent


def main() -> None:
    text = (FOLDER / "measure.md").read_text()
    held: dict[str, object] = {}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)), held)
    pictures = FOLDER / "pictures"
    pictures.mkdir(exist_ok=True)
    held["axes"][0, 0].figure.savefig(pictures / "overview.png", dpi=110)  # type: ignore[index]
    held["ax"].figure.savefig(pictures / "intervals.png", dpi=110)  # type: ignore[attr-defined]
    print(f"Drew {', '.join(sorted(path.name for path in pictures.iterdir()))}.")


if __name__ == "__main__":
    main()
