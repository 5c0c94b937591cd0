"""A reading process of its own: a driver that reads queries with Spark, a table for each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from tests.support.spark.sessions import QUICK, SLOTS, python_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

DEADLINE_S = 280


@dataclass(frozen=True, slots=True)
class Query:
    format: str
    options: Mapping[str, str]
    aggregate: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """Rows and seconds; the first queries of a session take longer."""

    table: pa.Table
    seconds: float


def read_by_spark(
    queries: Sequence[Query],
    folder: Path,
    jars: Sequence[Path] = (),
    variables: Mapping[str, str] | None = None,
    conf: Mapping[str, str] | None = None,
    *,
    deadline_s: float = DEADLINE_S,
) -> list[Read]:
    folder.mkdir(parents=True, exist_ok=True)
    request = {
        "queries": [asdict(query) for query in queries],
        "conf": {
            **QUICK,
            "spark.local.dir": str(folder),
            "spark.sql.warehouse.dir": f"{folder}/tables",
            "spark.sql.session.timeZone": "UTC",
            "spark.jars": ",".join(map(str, jars)),
            **(conf or {}),
        },
    }
    (folder / "request.json").write_text(json.dumps(request))
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.datasource.reading_process", str(folder)],
        env={**os.environ, "PYTHONPATH": python_path(), **(variables or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=deadline_s,
    )
    if done.returncode:
        raise AssertionError(done.stderr[-4_000:])
    seconds = json.loads((folder / "seconds.json").read_text())
    return [
        Read(pq.read_table(folder / f"{number}.parquet"), took)
        for number, took in enumerate(seconds)
    ]


def main(folder: Path) -> None:
    from spark_tiering.execution.session import open_session  # noqa: PLC0415 - large
    from spark_tiering.execution.settings import ExecutionSettings  # noqa: PLC0415

    request: dict[str, Any] = json.loads((folder / "request.json").read_text())
    opened = open_session(
        ExecutionSettings(
            f"local[{SLOTS}]", conf=request["conf"], log_file=str(folder / "spark.log")
        )
    )
    seconds = []
    try:
        for number, query in enumerate(request["queries"]):
            reader = opened.spark.read.format(query["format"]).options(**query["options"])
            begun = time.monotonic()
            found = reader.load()
            if query["aggregate"]:
                found = found.selectExpr(*query["aggregate"].split(";"))
            table = found.toArrow()
            seconds.append(time.monotonic() - begun)
            pq.write_table(table, folder / f"{number}.parquet")
    finally:
        opened.close()
    (folder / "seconds.json").write_text(json.dumps(seconds))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
