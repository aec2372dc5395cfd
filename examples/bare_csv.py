"""No model at hand, only a file with two columns: the command line answers, and so does this."""

import csv
import random
import subprocess
import sys
import tempfile
from pathlib import Path

random.seed(0)
with tempfile.TemporaryDirectory() as folder:
    past, new, out, page = (Path(folder) / name for name in ("past.csv", "new.csv", "out.csv", "report.html"))
    predictions = [random.uniform(10, 20) for _ in range(500)]
    with past.open("w", newline="") as file:
        rows = [(prediction + random.gauss(0, 1.5), prediction) for prediction in predictions]
        csv.writer(file).writerows([("target", "prediction"), *rows])
    new.write_text("id,prediction\n001,12.5\n002,17\n")

    pimeter = [sys.executable, "-m", "pimeter"]
    subprocess.run([*pimeter, "measure", past, "--out", page], check=True)
    subprocess.run([*pimeter, "interval", past, "--apply", new, "--out", out], check=True)
    print(out.read_text())
    print(f"The report has {len(page.read_text()):,} characters.")
