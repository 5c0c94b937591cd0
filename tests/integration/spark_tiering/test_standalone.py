"""A cluster of Spark's own with two workers, and our packages sent to it as the documents say."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import time
import venv
import zipfile
from contextlib import ExitStack, suppress
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from rlmm.metadata.ids import TopicIdPartition
from tests.support.cli.tier_command import Command
from tests.support.repository import tree
from tests.support.spark import units_program
from tests.support.spark.sessions import TIMEOUT_S, spark_process, spark_program
from tests.support.stores.s3_servers import free_ports
from tests.support.tier.job_folders import ORDERS, PAYMENTS, TierPlace

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS = "rlmm"
EXTRAS = ("s3", "tiering")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")


def environment_of_ours(folder: Path) -> Path:
    venv.create(folder, symlinks=True, with_pip=False)
    (place,) = (folder / "lib").glob("python*/site-packages")
    for one in needed():
        for file in one.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(str(one.locate_file(file)), place / file)
    for path in tree.files():
        if path.parts[0] in tree.PACKAGES:
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(tree.ROOT / path, place / path)
    return folder / "bin" / "python"


def packed_environment(environment: Path, archive: Path) -> Path:
    with tarfile.open(archive, "w:gz", compresslevel=1) as file:
        file.add(environment, ".")
    return archive


def needed() -> list[Distribution]:
    found: dict[str, Distribution] = {}
    waiting = _needs(distribution(OURS), EXTRAS)
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # for another Python, or another system
            continue
        waiting += _needs(found[name], ())
    return list(found.values())


def _needs(one: Distribution, extras: tuple[str, ...]) -> list[str]:
    needs = []
    for text in one.requires or ():
        asked = _EXTRA.search(text)
        named = _NAME.match(text)
        if named is not None and (asked is None or asked[1] in extras):
            needs.append(named[0])
    return needs


pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * TIMEOUT_S)]


class Cluster(NamedTuple):
    master: str
    folder: Path
    python: Path
    """Of an environment with everything but our packages."""
    packages: Path
    """Those, as an archive."""

    def submit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = (f"--py-files={self.packages}", units_program.__file__, *arguments)
        variables = {"PYSPARK_PYTHON": str(self.python)}
        with self.submitting(*program, **variables) as process:
            output, errors = process.communicate(timeout=TIMEOUT_S)
        return subprocess.CompletedProcess(program, process.returncode, output, errors)

    def submitting(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        """Run spark-submit with further arguments and without the environment of the test run."""
        conf = {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(self.folder / "local"),
        }
        outside = ("PYTHONPATH", "SPARK_LOCAL_IP")
        inherited = {name: value for name, value in os.environ.items() if name not in outside}
        return subprocess.Popen(
            [
                spark_program("spark-submit"),
                f"--master={self.master}",
                *(f"--conf={name}={value}" for name, value in conf.items()),
                *arguments,
            ],
            env={**inherited, "SPARK_LOCAL_IP": "127.0.0.1", **variables},
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def executors(self) -> list[int]:
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):  # it has ended, or is not ours
                is_one = b"CoarseGrainedExecutorBackend" in (process / "cmdline").read_bytes()
                if is_one and (process / "cwd").resolve().is_relative_to(self.folder):
                    found.append(int(process.name))
        return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("standalone")
    port, *ports = free_ports(3)
    starter = str(spark_program("spark-class"))
    at = ["--host", "127.0.0.1", "--webui-port", "0", "--port"]
    with ExitStack() as running:
        log = folder / "master"
        command = [starter, "org.apache.spark.deploy.master.Master", *at, str(port)]
        running.enter_context(spark_process(command, port, log, PYTHONPATH=""))
        master = f"spark://127.0.0.1:{port}"
        for number, own in enumerate(ports):
            place = {"SPARK_WORKER_DIR": str(folder / f"work-{number}"), "PYTHONPATH": ""}
            command = [starter, "org.apache.spark.deploy.worker.Worker", *at, str(own)]
            command += ["--cores", "1", "--memory", "1G", master]
            running.enter_context(spark_process(command, own, folder / f"worker-{number}", **place))
        deadline = time.monotonic() + TIMEOUT_S
        while log.read_text().count("Registering worker") < 2:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield Cluster(master, folder, python_without_us(folder), packed(folder))


def python_without_us(folder: Path) -> Path:
    venv.create(folder / "env", symlinks=True, with_pip=False)
    (place,) = (folder / "env" / "lib").glob("python*/site-packages")
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (place / "installed.pth").write_text("\n".join(installed))
    return folder / "env" / "bin" / "python"


def packed(folder: Path) -> Path:
    archive = folder / "rlmm.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in tree.files():
            if path.parts[0] in tree.PACKAGES:
                file.write(tree.ROOT / path, path)
    return archive


def test_units_when_a_worker_is_killed_then_run_by_both(cluster: Cluster, tmp_path: Path) -> None:
    """Both workers run units from the archive; a killed executor's unit runs again."""
    ended = cluster.submit(f"--meet={tmp_path}")
    assert ended.returncode == 0, ended.stderr[-3_000:]
    answer = json.loads(ended.stdout)
    assert [outcome[0] for outcome in answer["outcomes"]] == [0, 1, 4, 9, 16, 25]
    assert answer["told"] == 6
    folders = {Path(outcome[1]) for outcome in answer["outcomes"]}
    workers = {path.relative_to(cluster.folder).parts[0] for path in folders}
    assert workers == {"work-0", "work-1"}
    assert all("rlmm.zip" in outcome[2] for outcome in answer["outcomes"])
    assert (tmp_path / "killed").exists()


def test_copies_when_an_executor_is_killed_then_are_made(cluster: Cluster, tmp_path: Path) -> None:
    """With the packed environment every segment is copied once although an executor dies."""
    more = [TopicIdPartition(ORDERS.topic_id, ORDERS.topic, number) for number in range(10, 16)]
    place = TierPlace(tmp_path, partitions=[ORDERS, PAYMENTS, *more])
    python = environment_of_ours(tmp_path / "env")
    archive = packed_environment(tmp_path / "env", tmp_path / "env.tar.gz")
    flags = Command(place).flags(no_spark=None, max_requests_per_s="8")
    program = tree.ROOT / "examples" / "spark_tiering" / "submit.py"
    with cluster.submitting(
        f"--archives={archive}#environment",
        str(program),
        *("tier", "run", *flags, "--output", "json"),
        PYSPARK_PYTHON="./environment/bin/python",
        PYSPARK_DRIVER_PYTHON=str(python),
        # Else a Spark that pip installed is looked for in the driver's Python.
        SPARK_HOME=str(spark_program("spark-submit").parent.parent),
    ) as process:
        deadline = time.monotonic() + TIMEOUT_S
        while not any(key.endswith(".log") for key in place.objects()):
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        killed, *others = cluster.executors()
        os.kill(killed, signal.SIGKILL)
        output, errors = process.communicate(timeout=TIMEOUT_S)
    assert others, "both workers had one"
    assert process.returncode == 0, errors[-3_000:]
    assert "Lost executor" in errors
    report = json.loads(output[output.index("{\n") :])
    assert report["segments"] == {"finished": 16}
    for number in (0, 1):
        assert [*cluster.folder.glob(f"work-{number}/app-*/*/environment/pyvenv.cfg")]
    place.check_clean()


def test_master_when_spark_submit_says_another_then_is_refused(cluster: Cluster) -> None:
    """A master different from that of spark-submit is refused, and nothing starts."""
    ended = cluster.submit("local[2]")
    line = f"rlmm: config: spark-submit says master {cluster.master}, it cannot be local[2] as well"
    assert ended.returncode == 2
    # Spark-submit prints what its program prints to either as output.
    assert line in ended.stdout.splitlines()
