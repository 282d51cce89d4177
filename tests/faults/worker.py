"""`python -m faults.worker FOLDER TOKENIZER NAME`: runs the trials that no other worker has taken, one after another.

FOLDER gets TRIAL.json with the findings of each, or TRIAL.error with the traceback.
"""

from __future__ import annotations

import sys
import traceback
from pathlib import Path

from faults.cases import TRIALS
from faults.lab import Lab, as_json


def main(folder: Path, tokenizer: Path, name: str) -> None:
    lab = Lab(folder / name, tokenizer)
    try:
        for trial in TRIALS:
            try:
                (folder / f"{trial.id}.taken").touch(exist_ok=False)
            except FileExistsError:
                continue
            try:
                found, ending = as_json(lab.run(trial)), "json"
            except Exception:
                found, ending = traceback.format_exc(), "error"
            (folder / f"{trial.id}.part").write_text(found)
            (folder / f"{trial.id}.part").rename(folder / f"{trial.id}.{ending}")
    finally:
        lab.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
