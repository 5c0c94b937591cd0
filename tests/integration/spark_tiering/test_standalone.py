"""A cluster of Spark's own with two workers, and our packages sent to it as the documents say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import venv
import zipfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support import engine_process, tree
from tests.support.s3_servers import free_ports
from tests.support.spark_sessions import TIMEOUT_S, spark_process, spark_program

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.long, pytest.mark.timeout(2 * TIMEOUT_S)]


class Cluster(NamedTuple):
    """A master, and what a program needs that is sent to it."""

    master: str
    folder: Path
    python: Path
    """Of an environment with everything but our packages."""
    packages: Path
    """Those, as an archive."""

    def submit(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`tests.support.engine_process` by spark-submit."""
        conf = {
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.cores.max": "2",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(self.folder / "local"),
        }
        outside = ("PYTHONPATH", "SPARK_LOCAL_IP")
        inherited = {name: value for name, value in os.environ.items() if name not in outside}
        return subprocess.run(
            [
                spark_program("spark-submit"),
                f"--master={self.master}",
                f"--py-files={self.packages}",
                *(f"--conf={name}={value}" for name, value in conf.items()),
                engine_process.__file__,
                *arguments,
            ],
            env={**inherited, "PYSPARK_PYTHON": str(self.python), "SPARK_LOCAL_IP": "127.0.0.1"},
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=TIMEOUT_S,
        )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers of one core, on loopback."""
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
    """An environment that has what is installed here, but for what this tree is installed as."""
    venv.create(folder / "env", symlinks=True, with_pip=False)
    (place,) = (folder / "env" / "lib").glob("python*/site-packages")
    installed = [path for path in sys.path if path.endswith("site-packages")]
    (place / "installed.pth").write_text("\n".join(installed))
    return folder / "env" / "bin" / "python"


def packed(folder: Path) -> Path:
    """Our packages as one archive."""
    archive = folder / "rlmm.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in tree.files():
            if path.parts[0] in tree.PACKAGES:
                file.write(tree.ROOT / path, path)
    return archive


def test_units_when_sent_to_two_workers_then_are_run_by_both_though_one_is_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    """The packages come from the archive; the unit whose executor was killed is run again."""
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


def test_master_when_spark_submit_says_another_then_is_refused(cluster: Cluster) -> None:
    """Two places to say it are one too many: nothing is started."""
    ended = cluster.submit("local[2]")
    line = f"rlmm: config: spark-submit says master {cluster.master}, it cannot be local[2] as well"
    assert ended.returncode == 2
    # Spark-submit prints what its program prints to either as output.
    assert line in ended.stdout.splitlines()
