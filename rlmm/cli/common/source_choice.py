"""Options of every query: source, moment and output. Help imports this: keep it light."""

from __future__ import annotations

import functools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from rlmm.cli.common.option_kinds import no_secret_properties, switch
from rlmm.cli.common.parameter_types import POSITIVE_TIME, TIME
from rlmm.cli.common.shared_flags import SharedOption
from rlmm.cli.printing.settings import OUTPUTS, PrintSettings
from rlmm.inspection.selectors import MomentSelector, parse_at
from rlmm.state_sources.settings import SourceSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PASSED_ON = "flags_passed_on"

PACKAGED_SOCKET = Path("/run/rlmm/rlmm.sock")
"""Where the service listens that systemd runs, see `deploy/`."""

_FILE = click.Path(dir_okay=False, path_type=Path)
_FOLDER = click.Path(file_okay=False, path_type=Path)


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """The options of a query apart from the question itself."""

    settings: SourceSettings
    printing: PrintSettings
    now_ms: int
    """The wall clock, looked up once for the whole command."""
    at: MomentSelector | None = None
    wait_s: float = 0.0
    is_debug: bool = False


def _shared(flag: str, text: str, **attributes: Any) -> Any:
    return click.option(flag, cls=SharedOption, help=text, **attributes)


_SOURCE = (
    _shared(
        "--sidecar", "Ask this running service. The default is the service on this machine.",
        default="", metavar="SOCKET|HOST:PORT",
    ),
    _shared(
        "--cluster", "Ask about this cluster, if the service serves several.",
        default="", metavar="ID",
    ),
    _shared("--token-file", "File with the token for the service.", type=_FILE),
    switch("--tls", "Connect to HOST:PORT with TLS.", cls=SharedOption),
    switch(
        "--plaintext-token", "Send the token to another machine without TLS.", cls=SharedOption
    ),
    _shared("--ca-file", "CA certificates, PEM. Implies TLS.", type=_FILE),
    _shared("--cert-file", "Client certificate, PEM.", type=_FILE),
    _shared("--key-file", "Private key of the certificate, PEM.", type=_FILE),
    _shared(
        "--bootstrap-server",
        "Read the metadata topic of this cluster. Beside another source: ask only for the "
        "facts of the cluster.",
        default="", metavar="HOST:PORT,...",
    ),
    _shared("--command-config", "client.properties of a Java client.", type=_FILE),
    _shared(
        "--command-property", "A property of a Java client. Repeatable.",
        multiple=True, metavar="KEY=VALUE", callback=no_secret_properties,
    ),
    _shared(
        "--log-dirs", "Read copied folders of the metadata topic. Repeatable.",
        multiple=True, type=_FOLDER, metavar="FOLDER",
    ),
    _shared(
        "--partition-count",
        "Partition count of the copied topic, if the folders do not contain it.",
        type=click.IntRange(1), metavar="N",
    ),
    _shared(
        "--snapshot-cache", "Keep the state of the topic in this folder, for the next command.",
        type=_FOLDER, metavar="FOLDER",
    ),
    _shared(
        "--wait", "How long to wait for a source that is not caught up: 30s.",
        type=TIME, default="0s", metavar="TIME",
    ),
    _shared(
        "--timeout", "Timeout of each request.",
        type=POSITIVE_TIME, default="30s", show_default=True, metavar="TIME",
    ),
)  # fmt: skip
_AT = (
    _shared(
        "--at",
        "Show the state after the event at OFFSET of the metadata partition "
        "(PARTITION:OFFSET,... for several), or at a TIME: 2026-01-31T14:05:00Z, -7d.",
        metavar="OFFSET|TIME",
    ),
)  # fmt: skip
_OUTPUT = (
    _shared(
        "--output", "The default is table on a terminal, else json.", type=click.Choice(OUTPUTS),
    ),
    switch("--wide", "Show more columns.", cls=SharedOption),
    switch("--no-headers", "Print no header line.", cls=SharedOption),
    switch("--quiet", "Print data only.", cls=SharedOption),
    switch("--debug", "Print the traceback of an error.", cls=SharedOption),
)  # fmt: skip


def source_options(function: Callable[..., Any]) -> Any:
    """Add the options of the source; the command receives `asked`."""
    return _with(_SOURCE, function)


def source_flags() -> list[Any]:
    """Add the same options only, for commands that build their own choice; see `asked_of`."""
    return list(_SOURCE)


def at_option(function: Callable[..., Any]) -> Any:
    """Add `--at`, for commands that read; part of `asked`."""
    return _with(_AT, function)


def output_options(function: Callable[..., Any]) -> Any:
    return _with(_OUTPUT, function)


def query(function: Callable[..., Any]) -> Any:
    """Add the options of a query about the present."""
    return source_options(output_options(function))


def past_query(function: Callable[..., Any]) -> Any:
    """Add the options of a query that can be about a past moment, too."""
    return source_options(at_option(output_options(function)))


def _with(options: tuple[Any, ...], function: Callable[..., Any]) -> Any:
    """
    Add *options* to *function*, listed in the help after its own. Each outer decorator passes its
    values inwards; the innermost builds the argument from all of them.
    """
    is_innermost = not hasattr(function, _PASSED_ON)

    @functools.wraps(function)
    def called(**given: Any) -> Any:
        flags = given.pop(_PASSED_ON, {})
        flags.update((name, given.pop(name)) for name in names)
        if not is_innermost:
            return function(**given, **{_PASSED_ON: flags})
        return function(asked=asked_of(flags, click.get_current_context()), **given)

    command: Any = called
    setattr(command, _PASSED_ON, True)
    own: list[click.Parameter] = list(getattr(function, "__click_params__", ()))
    command.__click_params__ = []
    for option in reversed(options):
        command = option(command)
    names = [parameter.name for parameter in command.__click_params__]
    shared = sum(isinstance(parameter, SharedOption) for parameter in own)
    command.__click_params__ = own[:shared] + command.__click_params__ + own[shared:]
    return command


def asked_of(flags: Mapping[str, Any], context: click.Context) -> SourceChoice:
    """Build the choice from *flags*; raises `ConfigError` or `InvalidArgument`."""
    now_ms = time.time_ns() // 1_000_000
    at = flags.get("at")
    settings = _settings_of(_of_one_source(dict(flags), context))
    return SourceChoice(
        settings,
        PrintSettings.of_terminal(
            flags.get("output"),
            is_wide=bool(flags.get("wide")),
            has_headers=not flags.get("no_headers"),
            is_quiet=bool(flags.get("quiet")),
        ),
        now_ms,
        None if at is None else parse_at(at, now_ms),
        flags.get("wait", 0) / 1_000,
        bool(flags.get("debug")),
    )


_OF_ONE_KIND = (
    (("command_config", "command_property"), "bootstrap_server"),
    (("partition_count",), "log_dirs"),
)
"""Flags that mean something for one kind of source alone, and the flag that names such a one."""


def _of_one_source(flags: dict[str, Any], context: click.Context) -> dict[str, Any]:
    """Drop sources of the environment if the command line names one; a cluster stays beside it."""
    said = {
        name
        for name in ("sidecar", "log_dirs", "bootstrap_server")
        if flags.get(name) and context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    if said:
        for name in {"sidecar", "log_dirs"} - said:
            flags[name] = None
    for names, of in _OF_ONE_KIND:
        for name in names if not flags.get(of) else ():
            if context.get_parameter_source(name) is ParameterSource.ENVIRONMENT:
                flags[name] = None
    return flags


def _settings_of(flags: Mapping[str, Any]) -> SourceSettings:
    log_dirs, servers = tuple(flags.get("log_dirs") or ()), flags.get("bootstrap_server") or ""
    sidecar = flags.get("sidecar") or ""
    return SourceSettings(
        log_dirs,
        sidecar if sidecar or log_dirs or servers else local_sidecar(os.environ),
        flags.get("cluster") or "",
        flags.get("token_file"),
        bool(flags.get("tls")),
        flags.get("ca_file"),
        flags.get("cert_file"),
        flags.get("key_file"),
        servers,
        flags.get("command_config"),
        tuple(flags.get("command_property") or ()),
        flags.get("snapshot_cache"),
        flags.get("timeout", 30_000) / 1_000,
        flags.get("partition_count"),
        bool(flags.get("plaintext_token")),
    )


def local_sidecar(environ: Mapping[str, str]) -> str:
    """Return the local service's address: by its variables, its data folder, or the package."""
    said = environ.get("RLMM_SIDECAR_UNIX_PATH")
    if said:
        return said
    here = Path(environ.get("RLMM_DATA_DIR") or "rlmm-data") / "rlmm.sock"
    return str(next((one for one in (here, PACKAGED_SOCKET) if one.exists()), here))
