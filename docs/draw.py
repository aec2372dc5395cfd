"""Draw the plots of measure.md by running its code, and that of the report in a browser: python docs/draw.py.

The report is that of `pimeter demo`, in the system's Chromium.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent


def draw_report(path: Path) -> None:
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        subprocess.run([sys.executable, "-m", "pimeter", "demo"], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1180, "height": 1440})
        page.goto((Path(folder) / "pimeter-demo.html").as_uri())
        page.screenshot(path=path)
        browser.close()
    Image.open(path).convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(path, optimize=True)


def main() -> None:
    text = (FOLDER / "measure.md").read_text()
    held: dict[str, object] = {}
    exec("\n".join(re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)), held)
    plots = FOLDER / "plots"
    plots.mkdir(exist_ok=True)
    held["axes"][0, 0].figure.savefig(plots / "overview.png", dpi=110)  # type: ignore[index]
    held["ax"].figure.savefig(plots / "intervals.png", dpi=110)  # type: ignore[attr-defined]
    draw_report(plots / "report.png")
    print(f"Drew {', '.join(sorted(path.name for path in plots.iterdir()))}.")


if __name__ == "__main__":
    main()
