"""
A nightly copy of cold segments as a DAG for Airflow 3.

The first task keeps a plan for operators, the second plans anew and copies, so a retry skips copied
segments. A run that ends with 4 (`topic-busy`, service not ready) is retried. The machine needs
`rlmm` with the extras `s3`, `spark`, `tiering`, and `java`; boto3 finds the credentials.
"""

from __future__ import annotations

import shlex
from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import (  # type: ignore[import-not-found]  # Airflow is no dependency of this tree
    BashOperator,
)
from airflow.sdk import DAG  # type: ignore[import-not-found]  # the same

WHAT = (
    "--source-sidecar=https://broker-1.example:7405",
    "--source-sidecar=https://broker-2.example:7405",
    "--source-token-file=/etc/rlmm/source.token",
    # A service on a log of its own: an archive is not kept in the cluster's metadata.
    "--sidecar=rlmm.example:7404",
    "--sidecar-token-file=/etc/rlmm/sidecar.token",
    "--sidecar-ca-file=/etc/rlmm/ca.pem",
    "--bootstrap-server=broker-1.example:9092",
    "--store=s3://cold-segments/kafka/",
    "--topic=orders",
    "--topic=logs-*",
    "--min-age=1d",
    "--master=local[4]",
    "--max-mb-per-s=200",
    "--time-limit=5h",
)
"""What is copied from where to where; the same words for both commands."""
PLAN = "/var/lib/rlmm/plans/{{ ts_nodash }}-{{ ti.try_number }}.json"
REPORT = "/var/lib/rlmm/reports/{{ ts_nodash }}-{{ ti.try_number }}.json"
STOP_FILE = "/var/lib/rlmm/stop"
"""Who touches it stops the job between two segments; the next run goes on."""


with DAG(
    "rlmm_cold_segments",
    schedule="0 1 * * *",
    start_date=datetime(2026, 1, 1, tzinfo=UTC),
    catchup=False,
    # A second run beside the first would only be refused.
    max_active_runs=1,
    default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
) as dag:
    plan = BashOperator(
        task_id="plan", bash_command=shlex.join(["rlmm", "tier", "plan", *WHAT, "--save", PLAN])
    )
    run = BashOperator(
        task_id="run",
        bash_command=shlex.join(
            ["rlmm", "tier", "run", *WHAT, "--report", REPORT, "--stop-file", STOP_FILE]
        ),
        # What is on its way is finished first: SIGTERM asks for that.
        execution_timeout=timedelta(hours=6),
    )
    plan >> run
