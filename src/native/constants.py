"""The numbers of the rule, which stand in Python alone, as a C++ header: `python constants.py OUT FILE...`.

Runs while the extension is built, where no other package need be installed: the files are read, not imported.
"""

from __future__ import annotations

import ast
import math
import sys
from pathlib import Path


def constants(path: Path) -> dict[str, float]:
    """Names in capitals to which a module assigns a number, or several at once."""
    names: dict[str, object] = {"math": math}
    for line in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(line, ast.Assign) and "import" not in ast.unparse(line):
            try:
                exec(compile(ast.Module([line], []), str(path), "exec"), names)
            except NameError:  # made of what is not a number
                continue
    return {name: value for name, value in names.items() if name.isupper() and isinstance(value, int | float)}


def main(out: str, *files: str) -> None:
    """Write one namespace for each file, within our own: a name used twice is an error there, and never hidden."""
    lines = ["#pragma once", "#include <cstdint>"]
    for file in map(Path, files):
        numbers = (
            f"constexpr {'std::int64_t' if isinstance(value, int) else 'double'} {name} = {value!r};"
            for name, value in constants(file).items()
        )
        lines += [f"namespace pimeter::{file.stem} {{", *numbers, "}"]
    # What was built can be compared with what stands in Python when it is loaded.
    lines += ["namespace pimeter {", "template <class Use>", "void for_constants(Use use) {"]
    lines += [
        f'use("{file.stem}", "{name}", double({file.stem}::{name}));'
        for file in map(Path, files)
        for name in constants(file)
    ]
    lines += ["}", "}"]
    text, path = "\n".join([*lines, ""]), Path(out)
    if not path.exists() or path.read_text(encoding="utf-8") != text:  # what has not changed is not compiled anew
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
