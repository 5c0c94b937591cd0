"""The samples of scheduled copies use only options that the command has."""

from __future__ import annotations

import importlib.util
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import click
import pytest
import yaml

from rlmm.cli.tier.command import tier
from rlmm.cli.tier_common.options import request_of
from tests.support.repository import tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from spark_tiering.copy_job.request import JobRequest

FOLDER = tree.ROOT / "examples" / "spark_tiering"


def taken(words: Sequence[str]) -> tuple[str, JobRequest]:
    """Return the command of `rlmm tier` and its request for *words*."""
    program, group, name, *flags = words
    assert (program, group) == ("rlmm", "tier")
    parent = tier.make_context("tier", [name], resilient_parsing=True)
    command = tier.commands[name]
    return name, request_of(command.make_context(name, flags, click.Context(tier, parent)).params)


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)


# ------------------------------------------------------------------------------------- Kubernetes


def test_cron_job_when_read_then_is_one_whose_pod_can_do_its_work() -> None:
    """The service takes the command, and each file and each written place of it is mounted."""
    (job,) = yaml.safe_load_all((FOLDER / "cronjob.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("batch/v1", "CronJob")
    assert job["spec"]["concurrencyPolicy"] == "Forbid"
    pod = job["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    name, request = taken([*container["command"], *container["args"]])
    assert (name, request.engine.master) == ("run", "local[4]")
    mounts = {one["name"]: one["mountPath"] for one in container["volumeMounts"]}
    assert mounts.keys() == {one["name"] for one in pod["volumes"]}
    named = [word.partition("=")[2] for word in container["args"] if "-file=" in word]
    assert named
    for file in named:
        assert any(Path(file).is_relative_to(place) for place in mounts.values()), file
    assert container["securityContext"]["readOnlyRootFilesystem"]
    written = {one["name"]: one["value"] for one in container["env"]}
    for variable in ("SPARK_LOCAL_DIRS", "XDG_CACHE_HOME"):
        assert Path(written[variable]).is_relative_to(mounts["tmp"])
    # What is on its way is finished within the pause that the pod is given.
    assert pod["terminationGracePeriodSeconds"] >= 600


# ---------------------------------------------------------------------------------------- Airflow


class StandIn:
    """The part of Airflow that the sample uses; it keeps its arguments."""

    made: list[StandIn]

    def __init__(self, dag_id: str = "", **said: Any) -> None:
        self.said = {"dag_id": dag_id, **said}
        self.after: list[StandIn] = []
        type(self).made.append(self)

    def __enter__(self) -> StandIn:
        return self

    def __exit__(self, *ignored: object) -> None:
        """Nothing is kept open."""

    def __rshift__(self, other: StandIn) -> StandIn:
        self.after.append(other)
        return other


@contextmanager
def airflow(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[StandIn]]:
    StandIn.made = []
    for place, name in (
        ("airflow.sdk", "DAG"),
        ("airflow.providers.standard.operators.bash", "BashOperator"),
    ):
        module = ModuleType(place)
        setattr(module, name, StandIn)
        monkeypatch.setitem(sys.modules, place, module)
    yield StandIn.made


def test_airflow_dag_when_read_then_plans_and_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """The DAG has one run at a time and a plan before the copies with the same options."""
    spec = importlib.util.spec_from_file_location("dag", FOLDER / "airflow_dag.py")
    assert spec is not None
    assert spec.loader is not None
    with airflow(monkeypatch) as made:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    dag, *tasks = made
    assert (dag.said["max_active_runs"], dag.said["catchup"]) == (1, False)
    plan, run = tasks
    assert plan.after == [run]

    planned, done = (taken(shlex.split(one.said["bash_command"])) for one in tasks)
    assert (planned[0], done[0]) == ("plan", "run")
    assert done[1].stop_file
    assert planned[1].filters == done[1].filters
    assert planned[1].store == done[1].store
