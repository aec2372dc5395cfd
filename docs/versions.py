"""Build the docs of this state, and of each version that has a tag vX.Y.Z: versions.py FOLDER.

`FOLDER/dev` is this state, `FOLDER/X.Y.Z` a version, built in a checkout of its own; `versions.json` lists them for the
switch on each page, and `index.html` leads to the newest version. PIMETER_SITE is the path at which the folder is
served, such as /pimeter.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def tagged() -> list[str]:
    """Versions with a tag, the newest first."""
    found = re.findall(r"^v(\d+\.\d+\.\d+)$", git("tag"), flags=re.MULTILINE)
    return sorted(
        found,
        key=lambda version: tuple(map(int, version.split("."))),
        reverse=True,
    )


def build(checkout: Path, version: str, folder: Path) -> None:
    """The docs of a checkout, by its own Makefile, as a version of the site."""
    environment = os.environ | {"PIMETER_VERSION": version}
    subprocess.run(["make", "docs"], cwd=checkout, env=environment, check=True)
    shutil.copytree(
        checkout / "docs" / "_build", folder / version, dirs_exist_ok=True
    )


def write_lists(folder: Path, versions: list[str], site: str) -> None:
    """What belongs to no version: the list of all, and the way to the newest."""
    entries = [
        {"name": version, "version": version, "url": f"{site}/{version}/"}
        for version in versions
    ]
    (folder / "versions.json").write_text(json.dumps(entries, indent=1))
    newest = next((version for version in versions if version != "dev"), "dev")
    (folder / "index.html").write_text(
        f'<meta http-equiv="refresh" content="0; url={newest}/docs/index.html">\n'
    )
    pages = (folder / newest / "llms.txt").read_text()
    (folder / "llms.txt").write_text(pages.replace("](", f"]({newest}/"))


def main() -> None:
    folder, versions = Path(sys.argv[1]).resolve(), ["dev", *tagged()]
    folder.mkdir(exist_ok=True)
    build(ROOT, "dev", folder)
    for version in versions[1:]:
        with tempfile.TemporaryDirectory() as place:
            checkout = Path(place) / version
            git("worktree", "add", "--detach", str(checkout), f"v{version}")
            try:
                build(checkout, version, folder)
            finally:
                git("worktree", "remove", "--force", str(checkout))
    write_lists(folder, versions, os.environ.get("PIMETER_SITE", ""))


if __name__ == "__main__":
    main()
