"""Draw the plots of the pages by running their code, and the report in a browser: python docs/draw.py [PAGE ...].

A block of code draws the plots that follow it, in their order. The report is that of `pimeter demo`, in the system's
Chromium. Where pages are named, only theirs are drawn.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt

FOLDER = Path(__file__).parent
PLOTS = FOLDER / "plots"
CODE_OR_PICTURE = re.compile(
    r"^```python\n(?P<code>.*?)^```|\]\((?P<picture>plots/[\w.]+)\)",
    flags=re.DOTALL | re.MULTILINE,
)


def draw_report(path: Path) -> None:
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as playwright,
    ):
        subprocess.run(
            [sys.executable, "-m", "pimeter", "demo"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1180, "height": 1440})
        page.goto((Path(folder) / "pimeter-demo.html").as_uri())
        page.screenshot(path=path)
        browser.close()
    Image.open(path).convert(
        "P", palette=Image.Palette.ADAPTIVE, colors=128
    ).save(path, optimize=True)


def draw(page: Path) -> None:
    """All plots of a page, if it has any."""
    parts = list(CODE_OR_PICTURE.finditer(page.read_text()))
    if {part["picture"] for part in parts} <= {None, "plots/report.png"}:
        return
    held: dict[str, object] = {"__name__": page.stem}
    for part in parts:
        if part["code"]:
            plt.close("all")
            exec(compile(part["code"], str(page), "exec"), held)
        elif numbers := plt.get_fignums():
            plt.figure(numbers[0]).savefig(FOLDER / part["picture"], dpi=110)
            plt.close(numbers[0])
            print(f"Drew {part['picture']} of {page.name}.")


def main() -> None:
    PLOTS.mkdir(exist_ok=True)
    for page in sorted(FOLDER.glob("*.md")):
        if page.stem in sys.argv[1:] or not sys.argv[1:]:
            draw(page)
    if not sys.argv[1:]:
        draw_report(PLOTS / "report.png")


if __name__ == "__main__":
    main()
