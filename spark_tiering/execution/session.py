"""
A session of Spark's: of our own Java process, of spark-submit's, or of a Spark Connect server. The
output of our own Java process never reaches the terminal. Under spark-submit no setting is changed
that it, or the cluster, has set. Environment variables that Spark reads are restored.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from rlmm.errors import ConfigError, EngineUnfit
from spark_tiering.execution.failure_causes import cause_of, last_said
from spark_tiering.execution.java import find_java
from spark_tiering.execution.settings import is_submitted, retrying, standalone_masters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from spark_tiering.execution.settings import ExecutionSettings

EVERYWHERE: Final = {
    # 2.5 ms a task instead of 24: by TCP each waits for an acknowledgement that is held back.
    "spark.python.unix.domain.socket.enabled": "true",
    # A second attempt beside the first helps no copy: they share what is slow.
    "spark.speculation": "false",
    # Who reads with `pushdown=true` is refused by Spark where this is off.
    "spark.sql.python.filterPushdown.enabled": "true",
}
OF_OUR_OWN: Final = {
    "spark.app.name": "rlmm",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
ON_THIS_MACHINE: Final = {
    # Its bytes do not pass through Java: what counts is that it starts soon and stays small.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}

END_S: Final = 20.0
"""How long a Java process may take to end that was asked to."""
REACH_S: Final = 10.0
"""How long a master, or a Spark Connect server, may take to accept a connection."""
CONNECT_PORT: Final = 15_002
LOG_TAIL_BYTES: Final = 16_384


class OpenSession:
    def __init__(self, spark: SparkSession, end: Callable[[], None]) -> None:
        self.spark = spark
        self._end = end

    def close(self) -> None:
        end, self._end = self._end, _nothing
        end()


def open_session(settings: ExecutionSettings) -> OpenSession:
    """
    Return a session; raises `ConfigError` where spark-submit differs from *settings*, `EngineUnfit`
    where Spark cannot be started or reached, or this process has another session.
    """
    if settings.is_connect:
        return _connected(settings)
    if is_submitted():
        return _submitted(settings)
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - Spark has no other way
        msg = "a session of Spark's is open in this process already: it has to be given"
        raise EngineUnfit(msg)
    return _launched(settings)


def _submitted(settings: ExecutionSettings) -> OpenSession:
    SparkContext._ensure_initialized()  # noqa: SLF001 - SparkConf reads what was said from there
    conf = SparkConf()
    for name, value in {**EVERYWHERE, **settings.conf}.items():
        conf.setIfMissing(name, value)
    told = conf.get("spark.master", "")
    if settings.master and settings.master != told:
        msg = f"spark-submit says master {told}, it cannot be {settings.master} as well"
        raise ConfigError(msg)
    conf.setIfMissing("spark.app.name", "rlmm")
    _require_master(told)
    with _own_interrupts():
        try:
            spark = SparkSession.builder.config(conf=conf).getOrCreate()
        except Exception as error:
            msg = f"Spark does not start: {cause_of(error)}"
            raise EngineUnfit(msg) from error
    return OpenSession(spark, lambda: _stop(spark))


def _launched(settings: ExecutionSettings) -> OpenSession:
    master = retrying(settings.master or "")
    if not master:
        msg = "no master is named, and spark-submit has not started this process"
        raise ConfigError(msg)
    _require_master(master)
    said = {**EVERYWHERE, **OF_OUR_OWN, **(ON_THIS_MACHINE if settings.is_on_this_machine else {})}
    conf = SparkConf(loadDefaults=False)
    for name, value in {**said, **settings.conf, "spark.master": master}.items():
        conf.set(name, value)
    with _log(settings.log_file) as log, _environment(_variables(settings)), _own_interrupts():
        gateway = None
        try:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]  # has no annotations
                # Away from our group: who ends a service, or a task of Airflow's, signals all of
                # it, and Java would not wait for what the driver has begun. It ends with us.
                conf,
                {"stdout": log, "stderr": log, "start_new_session": True},
            )
            spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
        except Exception as error:
            why = last_said(_tail(log)) if gateway is None else cause_of(error)
            _end_gateway(gateway)
            msg = f"Spark does not start: {why}"
            raise EngineUnfit(msg) from error

    def end() -> None:
        _stop(spark)
        _end_gateway(gateway)

    return OpenSession(spark, end)


def _connected(settings: ExecutionSettings) -> OpenSession:
    address = connect_address(settings.master or "")
    place = f"{address[0]}:{address[1]}"
    try:
        # Nothing else of pyspark may need what this imports.
        from pyspark.sql.connect.session import SparkSession as ConnectSession  # noqa: PLC0415
    except ImportError as error:
        msg = f"Spark Connect needs pip install 'pyspark[connect]': {cause_of(error)}"
        raise EngineUnfit(msg) from error
    # Its client would go on trying for minutes.
    if why := _why_unreachable(address):
        msg = f"no Spark Connect server at {place}: {why}"
        raise EngineUnfit(msg)
    try:
        builder = ConnectSession.builder.remote(settings.master or "")
        for name, value in settings.conf.items():
            builder = builder.config(name, value)
        spark: Any = builder.create()
    except Exception as error:
        msg = f"the Spark Connect server at {place} cannot be used: {cause_of(error)}"
        raise EngineUnfit(msg) from error
    return OpenSession(spark, spark.stop)


def _require_master(master: str) -> None:
    whys = []
    for address in standalone_masters(master):
        why = _why_unreachable(address)
        if not why:
            return
        whys.append(f"{address[0]}:{address[1]}: {why}")
    if whys:
        msg = f"no master of Spark at {', '.join(whys)}"
        raise EngineUnfit(msg)


def _why_unreachable(address: tuple[str, int]) -> str:
    try:
        socket.create_connection(address, REACH_S).close()
    except OSError as error:
        return error.strerror or str(error)
    return ""


def connect_address(master: str) -> tuple[str, int]:
    try:
        parts = urlsplit(master)
        host, user, port = parts.hostname, parts.username, parts.port or CONNECT_PORT
    except ValueError:  # a port that is none, or half of an address in brackets
        host, user, port = None, None, CONNECT_PORT
    if not host or user or "token=" in master:
        # Not repeated in the message: it may be a secret.
        msg = (
            "sc://host:port is the address of a Spark Connect server; a token belongs into"
            " SPARK_CONNECT_AUTHENTICATE_TOKEN"
        )
        raise ConfigError(msg)
    return host, port


def _variables(settings: ExecutionSettings) -> dict[str, str]:
    cache = Path(settings.cache_folder) if settings.cache_folder else None
    variables = {"JAVA_HOME": str(find_java(os.environ, cache).home)}
    if settings.is_on_this_machine:
        variables["PYSPARK_PYTHON"] = sys.executable
        variables["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", "127.0.0.1")
    return variables


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _own_interrupts() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread() and before is not None:
            signal.signal(signal.SIGINT, before)


def _log(path: str) -> IO[bytes]:
    if not path:
        return tempfile.TemporaryFile()
    try:
        return Path(path).open("w+b")
    except OSError as error:
        msg = f"{path} cannot be written: {error.strerror}"
        raise ConfigError(msg) from error


def _tail(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
    return log.read().decode(errors="replace")


def _stop(spark: SparkSession) -> None:
    with suppress(Exception):
        spark.stop()
    SparkContext._active_spark_context = None  # noqa: SLF001 - left behind where Java had died


def _end_gateway(gateway: Any) -> None:
    if gateway is None:
        return
    with suppress(Exception):  # it may be gone already
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - Spark never lets go of it
    process: subprocess.Popen[bytes] = gateway.proc
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _nothing() -> None: ...
