"""How long an answer takes on one core, and how much memory: `eagle-bench compare` on files, and the bootstrap alone.

python benchmarks/compare_from_files.py [--levels 6] [--variants 3] [--requests 1000] [--out docs/method.md]

The files hold answers of about 2,000 characters, as 512 tokens have. The limits (15 s and 1 GB for the command, 5 s
for 10,000 resamples of 4 variants) are the project's own; the exit status is 1 where one is passed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from eagle_bench.intervals import ratios
from eagle_bench.stats import Resamples

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from simulated_cells import BASELINE, EAGLE, NGRAM, cell

LEVELS = (1, 2, 4, 6, 8, 10, 16, 32)
ENGINES = {"baseline": BASELINE, "eagle3": EAGLE, "ngram": NGRAM}
COMMAND_S, COMMAND_MB, BOOTSTRAP_S = 15.0, 1000.0, 5.0
START, END = "<!-- compare: begin -->", "<!-- compare: end -->"


def write_cells(folder: Path, levels: int, variants: int, requests: int) -> float:
    """Write the cells of a run; their size in MB."""
    for variant, engine in list(ENGINES.items())[:variants]:
        for level in LEVELS[:levels]:
            found = cell(variant, level, engine, prompts=requests)
            for request in found["requests"]:
                request["text"] = " ".join([request["text"]] * 26)
            (folder / f"{variant}-{level}.json").write_text(json.dumps(found), encoding="utf-8")
    return sum(file.stat().st_size for file in folder.iterdir()) / 1e6


def on_one_core(command: list[str]) -> tuple[float, float, float]:
    """Run a command on the first core: seconds by the clock, seconds of CPU, and its greatest memory in MB.

    Raises:
        CalledProcessError: it failed.
    """
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(
        command, check=True, stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, {min(cores())})
    )
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, cpu, after.ru_maxrss / 1000


def cores() -> set[int]:
    return os.sched_getaffinity(0)


def bootstrap_s(levels: int = 6, variants: int = 4, prompts: int = 1000, count: int = 10_000) -> tuple[float, float]:
    """Resample all levels against a baseline, TPOT and throughput: seconds by the clock and of CPU."""
    rng = np.random.default_rng(0)
    began, cpu = time.perf_counter(), time.process_time()
    for level in range(levels):
        hard, tokens = rng.normal(0, 0.35, prompts), rng.integers(20, 500, prompts).astype(float)
        sides = [10 * np.exp(hard + rng.normal(0, 0.12, prompts)) for _ in range(variants)]
        shared = Resamples(np.arange(prompts) % 3, count=count, seed=level)
        for side in sides[1:]:
            ratios([shared.median_ratio(sides[0], side)])
            ratios([shared.rate_ratio((tokens, tokens * side), (tokens, tokens * sides[0]))])
    return time.perf_counter() - began, time.process_time() - cpu


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", type=int, default=6, choices=range(1, len(LEVELS) + 1))
    parser.add_argument("--variants", type=int, default=3, choices=(2, 3))
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--out", type=Path, help="a Markdown file that holds the table between two comments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        cells = Path(place) / "cells"
        cells.mkdir()
        size = write_cells(cells, options.levels, options.variants, options.requests)
        command = [sys.executable, "-m", "eagle_bench", "compare", str(cells), "--baseline", "baseline"]
        wall, cpu, memory = on_one_core([*command, "--out", f"{place}/answer"])
        report = (Path(place) / "answer" / "report.html").stat().st_size / 1000
    os.sched_setaffinity(0, {min(cores())})
    resampled, resampling = bootstrap_s()
    what = f"{options.levels} levels × {options.variants} variants × {options.requests} requests"
    table = "\n".join(
        (
            "| what, on one core | by the clock | CPU | memory | limit |",
            "| :-- | --: | --: | --: | --: |",
            f"| `eagle-bench compare`: {what}, {size:.0f} MB of files, report of {report:.0f} kB "
            f"| {wall:.1f} s | {cpu:.1f} s | {memory:.0f} MB | {COMMAND_S:.0f} s, {COMMAND_MB:.0f} MB |",
            "| bootstrap alone: 10,000 resamples of 1,000 prompts × 6 levels × 4 variants, TPOT and throughput "
            f"| {resampled:.1f} s | {resampling:.1f} s | | {BOOTSTRAP_S:.0f} s |",
            "",
            f"{platform.system()} on {platform.machine()}, Python {platform.python_version()}, numpy {np.__version__}, "
            f"load average {os.getloadavg()[0]:.1f}.",
        )
    )
    print(table)
    if options.out:
        text = options.out.read_text(encoding="utf-8")
        before, _, rest = text.partition(START)
        _, _, after = rest.partition(END)
        options.out.write_text(f"{before}{START}\n{table}\n{END}{after}", encoding="utf-8")
    return int(cpu > COMMAND_S or memory > COMMAND_MB or resampling > BOOTSTRAP_S)


if __name__ == "__main__":
    sys.exit(main())
