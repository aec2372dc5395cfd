"""What is shipped: the library with its types and its licence, and in the sdist what builds it."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]


def belonging(folder: str) -> set[str]:
    """Files that belong to the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    if not listed:
        pytest.skip("no data: this is no checkout, so nobody knows which files belong to it")
    return {name for name in listed.splitlines() if (ROOT / name).exists()}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("dist")
    code = "import sys; from scikit_build_core.build import *; build_sdist(sys.argv[1]); build_wheel(sys.argv[1])"
    command = [sys.executable, "-c", code, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    return {path.suffix: path for path in folder.iterdir()}


def test_wheel_holds_the_library_and_nothing_else(built):
    wheel = zipfile.ZipFile(built[".whl"])
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    (extension,) = (name for name in names if name.startswith("pimeter/_native."))
    assert (".abi3." in extension) == ("-cp312-abi3-" in built[".whl"].name) == (sys.version_info >= (3, 12))
    assert names - {extension} == {name.removeprefix("src/") for name in belonging("src/pimeter")}
    assert {"pimeter/py.typed", "pimeter/report/page.html", "pimeter/report/page.js"} <= names
    (licence,) = (name for name in wheel.namelist() if name.endswith("licenses/LICENSE"))
    assert wheel.read(licence).decode() == (ROOT / "LICENSE").read_text()
    (metadata,) = (name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    about = message_from_string(wheel.read(metadata).decode())
    assert about["License-Expression"] == "BSD-3-Clause"
    assert "torch" not in {need.partition(">")[0] for need in about.get_all("Requires-Dist") if "extra" not in need}


def test_sdist_holds_what_builds_the_wheel(built):
    with tarfile.open(built[".gz"]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    extra = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "CMakeLists.txt", "pyproject.toml", "PKG-INFO"}
    assert names == belonging("src") | extra
