"""The files in `deploy/` parse, and every key, path, port, variable and option in them exists."""

from __future__ import annotations

import ast
import http.server
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rlmm.access.tokens import read_tokens
from rlmm.config.key_table import KEYS
from rlmm.config.loading import load
from rlmm.errors import ConfigError
from rlmm.http.routes import ROUTES
from rlmm.sidecar.listener import _FILES_KEPT
from tests.support.repository import tree
from tests.support.repository.deployment import (
    DEPLOY,
    DOCKERFILE,
    UNIT,
    documents,
    files,
    instructions,
    manifest,
    run,
    unit,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


VARIABLES = {key.env for key in KEYS.values()} | {"RLMM_CONFIG"}
PATHS = {route.path for route in ROUTES}
UNIT_OPTIONS = {
    "Unit": "Description Documentation Wants After",
    "Service": "Type NotifyAccess ExecStart ExecReload Environment EnvironmentFile WatchdogSec "
    "TimeoutStartSec TimeoutStopSec Restart RestartSec RestartPreventExitStatus DynamicUser "
    "User Group StateDirectory StateDirectoryMode RuntimeDirectory RuntimeDirectoryMode UMask "
    "LimitNOFILE NoNewPrivileges CapabilityBoundingSet AmbientCapabilities ProtectSystem "
    "ProtectHome PrivateTmp PrivateDevices ProtectClock ProtectControlGroups ProtectHostname "
    "ProtectKernelLogs ProtectKernelModules ProtectKernelTunables ProtectProc "
    "RestrictAddressFamilies RestrictNamespaces RestrictRealtime RestrictSUIDSGID "
    "LockPersonality MemoryDenyWriteExecute KeyringMode RemoveIPC SystemCallArchitectures "
    "SystemCallFilter SystemCallErrorNumber",
    "Install": "WantedBy",
}
"""The options of systemd in use; `systemd-analyze`, where present, knows all."""
PROCESS_STARTERS = {"subprocess", "multiprocessing", "pty"}


def seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def test_every_file_for_a_tool_parses() -> None:
    """The tool of each file in `deploy/` can parse it."""
    for suffix in (".yaml", ".yml"):
        for path in files(suffix):
            for document in documents(path):
                assert isinstance(document, dict), path
                assert suffix == ".yml" or {"apiVersion", "kind"} <= document.keys(), path
    assert set(unit().sections()) == set(UNIT_OPTIONS)
    for path in files(".py"):
        ast.parse(tree.read(path))


def test_every_variable_that_is_named_exists() -> None:
    """No file sets a variable that the service would refuse."""
    named = {
        (str(path), found)
        for path in tree.text_files()
        if path.parts[0] == "deploy" or path.name == "start.md"
        for found in re.findall(r"\bRLMM_[A-Z_]+\b", tree.read(path))
        if not (path.suffix == ".yaml" and found == "RLMM_PORT")
    }
    assert len(named) > 5
    assert not [(path, name) for path, name in named if name not in VARIABLES]


# ------------------------------------------------------------------------------------------ Docker


def arguments(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def test_image_copies_what_is_there_and_let_through() -> None:
    """Each file that is copied exists, and `.dockerignore` does not keep it out."""
    lines = [line for line in tree.read(Path(".dockerignore")).splitlines() if line[:1] != "#"]
    let_through = [line[1:] for line in lines if line.startswith("!")]
    assert lines[0] == "*"
    copied = [
        source
        for rest in arguments("COPY")
        if not rest.startswith("--from=")
        for source in rest.split()[:-1]
    ]
    assert set(copied) == set(let_through)
    assert all((tree.ROOT / source).exists() for source in copied)
    assert {*tree.PACKAGES, "pyproject.toml", "constraints"} <= set(copied)


def test_image_is_of_a_pinned_python_that_is_tested() -> None:
    """Both stages are of one exact version that the project names, and of one digest."""
    (version,) = [rest.partition("=")[2] for rest in arguments("ARG")]
    assert [rest.split()[0] for rest in arguments("FROM")] == ["python:${PYTHON}"] * 2
    exact = re.fullmatch(r"(3\.\d+)\.\d+-slim-[a-z]+@sha256:[0-9a-f]{64}", version)
    assert exact is not None
    project = tomllib.loads(tree.read(Path("pyproject.toml")))["project"]
    assert f"Programming Language :: Python :: {exact[1]}" in project["classifiers"]


def test_image_installs_by_hash_and_only_what_is_pinned(tmp_path: Path) -> None:
    """Everything from an index is pinned by hash; the build backend is cut out of the pinned."""
    for command in " && ".join(arguments("RUN")).split(" && "):
        if "pip install" in command or "pip wheel" in command:
            assert "--require-hashes" in command or "--no-deps" in command, command
    (cut,) = re.findall(r"awk '([^']+)' (\S+) > ", tree.read(DOCKERFILE))
    found = run("awk", *cut)
    (tmp_path / "backend.txt").write_text(found)
    assert re.match(r"setuptools==\S+ \\\n( +--hash=sha256:[0-9a-f]{64}.*\n)+", found)
    assert len(re.findall(r"^[a-z].*==", found, re.MULTILINE)) == 1


def test_image_without_the_native_core_says_so_and_how_it_is_added() -> None:
    """Image and unit install no core, the image says so, and the start page adds a wheel of it."""
    has_core = "rlmm-native" in tree.read(Path("constraints/runtime.txt"))
    has_core |= any("native" in rest for rest in arguments("COPY"))
    assert not has_core, "then the words below are no longer true"
    head = tree.read(DOCKERFILE).partition("ARG ")[0]
    assert "native core is\n# not in the image" in head
    page = tree.read(Path("docs/start.md"))
    assert "`COPY rlmm_native-*.whl /tmp/`" in page


def test_image_runs_as_nobody_with_one_volume_and_gets_its_signals(tmp_path: Path) -> None:
    """A user by number, one volume, exec form, and the ports of the manifests."""
    (user,) = arguments("USER")
    pod = manifest("base/deployment.yaml", "Deployment")["spec"]["template"]["spec"]
    security = pod["securityContext"]
    assert user == f"{security['runAsUser']}:{security['runAsGroup']}"
    (environment,) = arguments("ENV")
    variables = dict(one.split("=", 1) for one in environment.split())
    assert arguments("VOLUME") == [f'["{variables["RLMM_DATA_DIR"]}"]']
    assert variables["RLMM_HTTP_LISTEN"] == "0.0.0.0:7405"
    config = load(environ={k: v for k, v in variables.items() if k.startswith("RLMM_")}).config
    assert config.http.address == ("0.0.0.0", 7405)
    assert (arguments("ENTRYPOINT"), arguments("CMD")) == (['["rlmm"]'], ['["serve"]'])
    assert arguments("STOPSIGNAL") == ["SIGTERM"]
    assert set(arguments("EXPOSE")[0].split()) == {"7404", "7405"}
    (check,) = arguments("HEALTHCHECK")
    script = re.findall(r'CMD \["python", "([^"]+)"\]', check)
    assert [rest.split()[1] for rest in arguments("COPY") if "healthcheck" in rest] == script


def test_service_starts_no_processes() -> None:
    """The packages of the service start no process, so the container needs no init."""
    found = [
        f"{path}: {names}"
        for path in tree.python_files("rlmm")
        if not str(path).startswith(("rlmm_demo", "rlmm_conformance/"))
        for names in re.findall(
            rf"import (?:{'|'.join(PROCESS_STARTERS)})\b|create_subprocess\w*|os\.fork\b",
            tree.read(path),
        )
    ]
    assert not found


@contextmanager
def answering(status: int) -> Iterator[str]:
    class Answering(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status if self.path == "/livez" else 404)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with http.server.HTTPServer(("127.0.0.1", 0), Answering) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/livez"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    ("status", "expected"), [(200, 0), (503, 1), (None, 1)], ids=["alive", "stuck", "nobody"]
)
def test_health_check_then_exits_by_the_answer(status: int | None, expected: int) -> None:
    """The probe ends with 0 when `/livez` answers 200, and else with 1 and the reason."""
    script = tree.ROOT / DEPLOY / "docker/healthcheck.py"
    assert "/livez" in PATHS

    def ask(url: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-I", script], env={"HEALTH_URL": url}, capture_output=True,
            text=True, check=False,
        )  # fmt: skip

    if status is None:
        done = ask("http://127.0.0.1:1/livez")
    else:
        with answering(status) as url:
            done = ask(url)
    assert done.returncode == expected
    assert bool(done.stderr) == bool(expected)


# ----------------------------------------------------------------------------------------- systemd


def test_unit_has_only_options_that_systemd_knows(tmp_path: Path) -> None:
    """Every option is known to systemd, and `systemd-analyze`, where present, reports nothing."""
    for section in unit().sections():
        assert set(unit()[section]) <= set(UNIT_OPTIONS[section].split())
    analyze = shutil.which("systemd-analyze")
    if analyze is not None:
        program = shutil.which("rlmm") or sys.executable
        here = tmp_path / "rlmm.service"
        text = tree.read(UNIT)
        assert "ExecStart=/opt/rlmm/bin/rlmm serve" in text
        here.write_text(text.replace("/opt/rlmm/bin/rlmm", program))
        assert run(analyze, "verify", "--man=no", here) == ""
        run(analyze, "security", "--offline=yes", "--threshold=20", here)


def test_unit_fits_the_service_s_own_times_limits_and_exit_codes() -> None:
    """The unit outwaits an orderly stop, allows all connections, and restarts curable errors."""
    service = unit()["Service"]
    config = load().config
    assert service["Type"] == "notify"
    assert seconds(service["TimeoutStopSec"]) * 1_000 > config.process.shutdown_timeout_ms
    assert int(service["LimitNOFILE"]) >= config.sidecar.connections_max + _FILES_KEPT
    assert int(service["RestartPreventExitStatus"]) == ConfigError.exit_code
    assert service["ExecReload"] == "/bin/kill -HUP $MAINPID"
    variables = dict(line.split("=", 1) for line in service["Environment"].splitlines())
    assert variables["RLMM_DATA_DIR"] == f"/var/lib/{service['StateDirectory']}"
    assert Path(variables["RLMM_SIDECAR_UNIX_PATH"]).parent == Path(
        "/run", service["RuntimeDirectory"]
    )
    loaded = load(environ=variables).config
    assert (loaded.sidecar.mode, service["RuntimeDirectoryMode"]) == (0o660, "0750")


def test_example_of_the_unit_s_variables_is_a_configuration(tmp_path: Path) -> None:
    """The service takes the example with all of its comments enabled, except for the named file."""
    text = tree.read(UNIT.with_name("rlmm.env"))
    variables = dict(re.findall(r"^#(RLMM_[A-Z_]+)=(.*)$", text, re.MULTILINE))
    variables["RLMM_CONFIG"] = str(tmp_path / "rlmm.toml")
    (tmp_path / "rlmm.toml").write_text("")
    variables["RLMM_KAFKA_SASL_PASSWORD"] = "secret"
    loaded = load(environ=variables)
    assert loaded.config.kafka is not None
    assert loaded.notices == ()
    assert fnmatch(str(loaded.config.tls.certificate_file), "/etc/rlmm/*.pem")


EXAMPLES = ("deploy", "docs", "examples", "broker_adapter", "README.md")
TOKEN_LINE = re.compile(
    r"[^\s\"';#-]\S* (?:reader|broker|broker:[0-9]+|admin) [!-~]+(?=[\s\"';]|$)"
)


def test_example_secrets_are_refused() -> None:
    """No line of a token that stands in an example lets anybody in where it is used as it is."""
    assert read_tokens("broker-0 broker:0 replace-me-0-4f1d0c5b8a7e4d2f9b6c3a1e8d7f5b20", "here")
    lines = {
        (path, found.group().strip("`"))
        for path in tree.text_files()
        if path.parts[0] in EXAMPLES and path.suffix not in {".py", ".java"}
        for found in TOKEN_LINE.finditer(tree.read(path))
        if re.search(r"[0-9]{2}|sha256", found.group().split()[2])
    }
    assert len(lines) >= 3
    taken = []
    for path, line in sorted(lines):
        with suppress(ConfigError):
            taken.append((path, read_tokens(line, "here")))
    assert taken == []
