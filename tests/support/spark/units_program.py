"""
A program that runs units on Spark, as a command of ours or spark-submit starts one.

    python -m tests.support.spark.units_program [--times N] [--log FILE] [--meet FOLDER] [MASTER]

It prints the results as one line of JSON; an error of ours ends it with its line and its status.
With `--meet`, units wait for each other on two executors, and one of them is killed. Nothing of the
tests is imported: workers elsewhere have only the code sent to them.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path

from rlmm.errors import RlmmError
from spark_tiering.execution.opening import open_engine
from spark_tiering.execution.settings import SUBMITTED, ExecutionSettings

UNITS = 6
KILLER = 3
PATIENCE_S = 120.0


def where(meet: str, number: int) -> tuple[int, str, str]:
    here = Path.cwd()
    if meet:
        (Path(meet) / f"executor-{str(here).replace('/', '_')}").touch()
        deadline = time.monotonic() + PATIENCE_S
        while len(list(Path(meet).glob("executor-*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        killed = Path(meet) / "killed"
        if number == KILLER and not killed.exists():
            killed.touch()
            daemon = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
            os.kill(int(daemon[1]), signal.SIGKILL)
            time.sleep(PATIENCE_S)
    return number**2, str(here), str(sys.modules["rlmm"].__file__)


def children() -> int:
    threads = Path(f"/proc/{os.getpid()}/task").iterdir()
    return sum(len((thread / "children").read_text().split()) for thread in threads)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("master", nargs="?", default=SUBMITTED)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--log", default="")
    parser.add_argument("--meet", default="")
    asked = parser.parse_args()
    told: list[object] = []
    outcomes: list[object] = []
    slots = 0
    try:
        for _ in range(asked.times):
            with open_engine(ExecutionSettings(asked.master, log_file=asked.log)) as engine:
                slots = engine.slots
                work = partial(where, asked.meet)
                outcomes = [*engine.run_units(range(UNITS), work, told.append)]
    except RlmmError as error:
        sys.stderr.write(f"rlmm: {error.code}: {error}\n")
        return error.exit_code
    answer = {"slots": slots, "outcomes": outcomes, "told": len(told), "children": children()}
    sys.stdout.write(f"{json.dumps(answer)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
