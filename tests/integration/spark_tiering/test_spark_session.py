"""Spark sessions: their settings, their silence, and their errors."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rlmm.base.clock import SYSTEM_CLOCK
from rlmm.errors import ConfigError, EngineUnfit
from spark_tiering.execution.opening import open_engine
from spark_tiering.execution.session import connect_address, open_session
from spark_tiering.execution.settings import ExecutionSettings
from spark_tiering.stores.abandoned_uploads import sweep
from spark_tiering.stores.opening import open_store
from tests.support.cli.tier_command import Command
from tests.support.repository import tree
from tests.support.spark import units_program
from tests.support.spark.sessions import SLOTS, TIMEOUT_S, python_path, spark_program
from tests.support.stores.s3_servers import free_ports
from tests.support.tier.job_folders import LATER_MS, TierPlace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.timeout(TIMEOUT_S)


def run_program(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `tests.support.spark.units_program` without a Java in its environment."""
    inherited = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-m", "tests.support.spark.units_program", *arguments],
        env={**inherited, "PYTHONPATH": python_path(), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


def test_session_of_ours_has_the_measured_settings(spark_session: SparkSession) -> None:
    """Our own session has Unix sockets, no speculation, no web page, and repeats tasks."""
    conf = spark_session.sparkContext.getConf()
    names = (
        "spark.master",
        "spark.python.unix.domain.socket.enabled",
        "spark.speculation",
        "spark.ui.enabled",
        "spark.driver.host",
    )
    assert [conf.get(name) for name in names] == [
        f"local[{SLOTS},4]",
        "true",
        "false",
        "false",
        "localhost",
    ]


def test_session_when_made_then_leaves_the_environment(spark_session: SparkSession) -> None:
    """A new session leaves the environment and the interrupt handler as before."""
    assert spark_session.sparkContext.pythonExec == sys.executable
    assert "PYSPARK_PYTHON" not in os.environ
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_session_when_another_is_open_then_is_refused(spark_session: SparkSession) -> None:
    """An open session that was not passed in makes the engine refuse."""
    assert spark_session.version
    with pytest.raises(EngineUnfit, match="is open in this process already"):
        open_session(ExecutionSettings("local[1]"))


def test_session_when_it_was_given_then_outlives_its_engine(spark_session: SparkSession) -> None:
    """A session that the caller passed in stays open when its engine closes."""
    for _ in range(2):
        with open_engine(ExecutionSettings(), spark_session) as engine:
            assert engine.run_units([-1], abs) == [1]


@pytest.fixture
def path_without_java(tmp_path: Path) -> str:
    folder = tmp_path / "programs"
    folder.mkdir()
    for place in ("/usr/local/bin", "/usr/bin", "/bin"):
        for program in Path(place).iterdir():
            link = folder / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program)
    assert shutil.which("java", path=str(folder)) is None
    return str(folder)


def test_engine_without_java_runs_on_pips(path_without_java: str, tmp_path: Path) -> None:
    """Without Java the engine runs on pip's, prints nothing and leaves no process."""
    cache = tmp_path / "cache"
    ended = run_program("local[2]", PATH=path_without_java, XDG_CACHE_HOME=str(cache))
    assert (ended.returncode, ended.stderr) == (0, "")
    answer = json.loads(ended.stdout)
    assert [outcome[0] for outcome in answer["outcomes"]] == [0, 1, 4, 9, 16, 25]
    assert (answer["slots"], answer["told"], answer["children"]) == (2, 6, 0)
    assert len(list((cache / "rlmm").glob("java-*/bin/java"))) == 1


@pytest.mark.long
def test_engine_when_it_is_opened_again_then_has_a_session_of_its_own() -> None:
    """An engine opened again creates its own session, since the first one ended."""
    ended = run_program("--times=2", "local[2]")
    assert (ended.returncode, ended.stderr) == (0, "")
    answer = json.loads(ended.stdout)
    assert (answer["told"], answer["children"]) == (12, 0)


@pytest.mark.parametrize(
    ("master", "said"),
    [
        pytest.param(
            "nonsense", "Master must either be yarn or start with spark, k8s", id="master"
        ),
        pytest.param("yarn", "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set", id="yarn"),
        pytest.param("local[x]", "Could not parse Master URL: 'local[x]'", id="slots"),
    ],
)
def test_spark_that_does_not_start_has_one_line(tmp_path: Path, master: str, said: str) -> None:
    """When Spark does not start, the error is one line, and Java's output is kept on request."""
    ended = run_program(f"--log={tmp_path / 'log'}", master)
    assert (ended.returncode, ended.stdout) == (3, "")
    assert ended.stderr.startswith("rlmm: engine-unfit: Spark does not start: ")
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert said in (tmp_path / "log").read_text()


def test_log_of_spark_when_it_cannot_be_written_then_one_line_says_so(tmp_path: Path) -> None:
    """A log file that cannot be written is refused in one line before Spark starts."""
    ended = run_program(f"--log={tmp_path / 'absent' / 'log'}", "local[1]")
    line = f"rlmm: config: {tmp_path}/absent/log cannot be written: No such file or directory\n"
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", line)


def test_connect_when_nobody_listens_then_one_line_says_so_at_once() -> None:
    """A connect address without a listener fails at once, in one line."""
    (port,) = free_ports(1)
    with pytest.raises(EngineUnfit, match=f"no Spark Connect server at 127.0.0.1:{port}: "):
        open_engine(ExecutionSettings(f"sc://127.0.0.1:{port}"))


@pytest.mark.parametrize("is_submitted", [False, True], ids=["ours", "submitted"])
def test_master_when_nobody_listens_then_one_line_says_so_at_once(is_submitted: bool) -> None:
    """A master without a listener fails at once, in one line."""
    one, two = free_ports(2)
    master = f"spark://127.0.0.1:{one},127.0.0.1:{two}"
    ended = submitted(master) if is_submitted else run_program(master)
    line = (
        f"rlmm: engine-unfit: no master of Spark at 127.0.0.1:{one}: Connection refused,"
        f" 127.0.0.1:{two}: Connection refused"
    )
    assert ended.returncode == 3
    # Spark-submit prints what its program prints to either as output.
    said = ended.stdout if is_submitted else ended.stderr
    assert line in said.splitlines()
    assert "Traceback" not in ended.stdout + ended.stderr


def test_session_when_spark_submit_started_us_and_it_cannot_be_then_one_line_says_why() -> None:
    """When a session cannot start under spark-submit, Java's message becomes one line."""
    ended = submitted("local[1]", "--conf=spark.driver.bindAddress=192.0.2.1")
    assert ended.returncode == 3
    (line,) = [one for one in ended.stdout.splitlines() if one.startswith("rlmm: ")]
    assert line.startswith("rlmm: engine-unfit: Spark does not start: ")
    assert "Traceback" not in ended.stdout + ended.stderr


def submitted(master: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [spark_program("spark-submit"), f"--master={master}", *options, units_program.__file__],
        env={**os.environ, "PYTHONPATH": python_path(), "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


@pytest.mark.parametrize(
    ("module", "master", "text"),
    [
        ("pyspark.sql.connect.session", "sc://127.0.0.1", r"needs pip install 'pyspark\[connect"),
        ("pyspark", "local[1]", r"pip install 'rlmm\[spark\]'"),
    ],
    ids=["connect", "spark"],
)
def test_engine_when_packages_are_missing_names_them(
    monkeypatch: pytest.MonkeyPatch, module: str, master: str, text: str
) -> None:
    """Packages that are missing for Spark, or for Spark Connect, are named in one line."""
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(EngineUnfit, match=text):
        open_engine(ExecutionSettings(master))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("sc://host", ("host", 15_002)),
        ("sc://host:1234/;use_ssl=true", ("host", 1_234)),
        ("sc://[::1]:99", ("::1", 99)),
    ],
)
def test_connect_address_has_host_and_port(address: str, place: tuple[str, int]) -> None:
    """A connect address gives host and port as Spark reads it, with Spark's default port."""
    assert connect_address(address) == place


@pytest.mark.parametrize(
    "address",
    ["sc://", "sc://h:99999", "sc://h:x", "sc://[h", "sc://h/;token=secret", "sc://u:secret@h"],
)
def test_connect_address_when_wrong_is_refused_without_its_secret(address: str) -> None:
    """An invalid address, or one with a token, is refused without being repeated."""
    with pytest.raises(ConfigError) as raised:
        connect_address(address)
    assert "secret" not in str(raised.value)


def job_of_spark(place: TierPlace) -> subprocess.Popen[str]:
    """Start `rlmm tier run` in its own process group and return once it writes objects."""
    flags = Command(place).flags(no_spark=None, master=f"local[{SLOTS}]", max_requests_per_s="8")
    process = subprocess.Popen(
        [sys.executable, "-m", "rlmm", "tier", "run", *flags],
        cwd=tree.ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + TIMEOUT_S
    while not any(key.endswith(".log") for key in place.objects()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process


def test_job_when_its_group_is_signalled_then_finishes_its_copies(tmp_path: Path) -> None:
    """A signal to the process group lets running copies finish, and Spark ends too."""
    place = TierPlace(tmp_path)
    with job_of_spark(place) as process:
        os.killpg(process.pid, signal.SIGTERM)
        told, errors = process.communicate(timeout=TIMEOUT_S)
    assert "worker-lost" not in told
    assert "segments finished" in told
    assert "the work in progress is finished first" in errors
    assert "Traceback" not in errors
    assert process.returncode in (0, 1)
    place.check()


def test_job_when_the_java_of_spark_is_killed_then_reports(tmp_path: Path) -> None:
    """When Spark's Java is killed, open copies are reported and the next job is clean."""
    place = TierPlace(tmp_path)
    with job_of_spark(place) as process:
        (task,) = Path(f"/proc/{process.pid}/task/{process.pid}").glob("children")
        java = [int(one) for one in task.read_text().split()]
        for one in java:
            os.kill(one, signal.SIGKILL)
        told, errors = process.communicate(timeout=TIMEOUT_S)
    assert java
    # Threads of pyspark's own print traces; none is of ours, and the job says how it ended.
    assert "spark_tiering" not in errors
    assert "segments finished" in told or "rlmm: engine-unfit: " in errors, told + errors
    assert process.returncode in (1, 3), told + errors
    place.check()
    assert place.run(later_ms=LATER_MS).is_fine
    # What a worker was writing when it was ended with its Java is left to `rlmm tier sweep`.
    with open_store(place.store_settings) as store:
        sweep(store, place.prefix, SYSTEM_CLOCK.now_ms() + LATER_MS)
    place.check_clean()
