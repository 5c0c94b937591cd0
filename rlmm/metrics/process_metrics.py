"""Metrics of the process: readiness, resources, listeners and log lines. Pure."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final

from rlmm.metrics.http_statistics import CUT_OFF
from rlmm.metrics.metric import Metric, MetricKind, Scrape, keyed, one

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rlmm.access.authentication import AccessStatistics
    from rlmm.access.limits import ClientFigures
    from rlmm.sidecar.statistics import SidecarStatistics
    from rlmm.telemetry.logs import LinesStatistics

    Keyed = Mapping[tuple[str, ...], float]

GAUGE, COUNTER = MetricKind.GAUGE, MetricKind.COUNTER


def _sidecar(read: Callable[[SidecarStatistics], float]) -> Callable[[Scrape], float | None]:
    return lambda scrape: None if scrape.sidecar is None else read(scrape.sidecar)


def _sidecar_by(
    read: Callable[[SidecarStatistics], Mapping[str, int]],
) -> Callable[[Scrape], Keyed]:
    def figures(scrape: Scrape) -> Keyed:
        found = {} if scrape.sidecar is None else read(scrape.sidecar)
        return {(name,): count for name, count in found.items()}

    return figures


def _sidecar_refusals(scrape: Scrape) -> Keyed:
    found = {} if scrape.sidecar is None else scrape.sidecar.refusals
    return {key: count for key, count in found.items()}  # noqa: C416 - for the type checker


def _access(read: Callable[[AccessStatistics], float | None]) -> Callable[[Scrape], float | None]:
    return lambda scrape: None if scrape.access is None else read(scrape.access)


def _access_by(read: Callable[[AccessStatistics], Mapping[str, int]]) -> Callable[[Scrape], Keyed]:
    def figures(scrape: Scrape) -> Keyed:
        found = {} if scrape.access is None else read(scrape.access)
        return {(str(name),): count for name, count in found.items()}

    return figures


def _clients(read: Callable[[ClientFigures], int]) -> Callable[[Scrape], Keyed]:
    def figures(scrape: Scrape) -> Keyed:
        found = {} if scrape.access is None else scrape.access.clients
        return {(name,): read(client) for name, client in found.items()}

    return figures


def _handshakes(scrape: Scrape) -> Keyed:
    found = {} if scrape.access is None else scrape.access.handshakes
    return {
        (listener, outcome): count
        for listener, counts in found.items()
        for outcome, count in counts.items()
    }


def _lines(read: Callable[[LinesStatistics], float]) -> Callable[[Scrape], float | None]:
    return lambda scrape: None if scrape.lines is None else read(scrape.lines)


def _lines_by_level(scrape: Scrape) -> Keyed:
    written = {} if scrape.lines is None else scrape.lines.written
    levels = dict.fromkeys(("debug", "info", "warning", "error", "critical"), 0)
    return {(level,): count for level, count in {**levels, **written}.items()}


def _answers(scrape: Scrape) -> Keyed:
    return {(path, str(status)): count for (path, status), count in scrape.http.answers.items()}


STANDING: Final[tuple[Metric, ...]] = (
    keyed(
        "rlmm_build_info", MetricKind.INFO, ("version", "python"),
        lambda scrape: {(scrape.version, platform.python_version()): 1},
        "The versions of rlmm and of Python.",
    ),
    keyed(
        "rlmm_engine_info", MetricKind.INFO, ("engine", "version"),
        lambda scrape: {scrape.engine.pair: 1},
        "What holds the state, `native` or `python`, and its version.",
        "`python` where the native core is meant: the start's log line has the reason.",
    ),
    one(
        "rlmm_uptime_seconds", GAUGE,
        lambda scrape: None if scrape.service is None else scrape.service.uptime_s,
        "Time since the service was made.",
        "It starts from 0 again and again: the process is restarted in a loop.",
    ),
    one(
        "rlmm_ready", GAUGE, lambda scrape: scrape.standing.is_ready,
        "1 when every assigned metadata partition of every cluster is answered from, as `/readyz`.",
        "0 for longer than a start takes.",
    ),
    one(
        "rlmm_started", GAUGE, lambda scrape: scrape.is_started,
        "1 when all of that was answered from at least once, as `/startupz`.",
        "0 for longer than the longest replay.",
    ),
    one(
        "rlmm_stopping", GAUGE,
        lambda scrape: bool(scrape.standing.end or scrape.standing.failure),
        "1 when the end has begun: nothing is answered any more.",
        "1 for longer than `shutdown_timeout_ms`.",
    ),
    one(
        "rlmm_failed", GAUGE, lambda scrape: bool(scrape.standing.failure),
        "1 when the process ends because a part of it has failed.", "1 at all.",
    ),
    one(
        "rlmm_logs_opening", GAUGE, lambda scrape: len(scrape.standing.opening),
        "Clusters whose log is still being opened.",
        "Above 0 for long: a disk hangs; `/readyz` names the folder.",
    ),
    one(
        "rlmm_snapshots_asked_total", COUNTER,
        lambda scrape: None if scrape.service is None else scrape.service.snapshots_asked,
        "How often an operator asked for snapshots.",
    ),
)  # fmt: skip

RESOURCES: Final[tuple[Metric, ...]] = (
    one(
        "rlmm_process_resident_memory_bytes", GAUGE, lambda scrape: scrape.process.resident_bytes,
        "Resident memory.", "Near `rlmm_memory_alert_bytes`.",
    ),
    one(
        "rlmm_process_open_fds", GAUGE, lambda scrape: scrape.process.open_fds,
        "Open files and sockets.", "Near `rlmm_process_max_fds`.",
    ),
    one(
        "rlmm_process_max_fds", GAUGE, lambda scrape: scrape.process.max_fds,
        "Open files and sockets that the system allows.",
    ),
    one(
        "rlmm_process_threads", GAUGE, lambda scrape: scrape.process.threads,
        "Threads.", "It rises and rises: work in threads hangs, a disk for instance.",
    ),
    one(
        "rlmm_process_cpu_seconds_total", COUNTER, lambda scrape: scrape.process.cpu_s,
        "Processor time, user and system.",
        "Near 1 second a second: one event loop has one core, and that is used up.",
    ),
    one(
        "rlmm_process_start_time_seconds", GAUGE, lambda scrape: scrape.process.begin_s,
        "When the process began, in seconds since 1970.",
    ),
)  # fmt: skip

LINES: Final[tuple[Metric, ...]] = (
    keyed(
        "rlmm_log_lines_total", COUNTER, ("level",), _lines_by_level,
        "Log lines written.", "Lines of level `error` or `critical` at all.",
    ),
    one(
        "rlmm_log_lines_suppressed_total", COUNTER, _lines(lambda lines: lines.suppressed),
        "Repeats that were counted instead of written.", "A high rate: something fails in a loop.",
    ),
    one(
        "rlmm_log_lines_failed_total", COUNTER, _lines(lambda lines: lines.failed),
        "Log lines that could not be written.", "It rises: no program reads the log any more.",
    ),
)  # fmt: skip

SIDECAR: Final[tuple[Metric, ...]] = (
    keyed(
        "rlmm_sidecar_connections", GAUGE, ("state",), _sidecar_by(lambda found: found.connections),
        "Connections of the frame protocol, by state.", "Many in state `slow`.",
    ),
    one(
        "rlmm_sidecar_connections_max", GAUGE, _sidecar(lambda found: found.connections_max),
        "How many there may be, as far as the system has files for them.",
    ),
    one(
        "rlmm_sidecar_connections_accepted_total", COUNTER, _sidecar(lambda found: found.accepted),
        "Connections that came.", "A high rate: clients connect for each request.",
    ),
    one(
        "rlmm_sidecar_connections_refused_total", COUNTER, _sidecar(lambda found: found.refused),
        "Connections that were one too many.", "It rises.",
    ),
    keyed(
        "rlmm_sidecar_connections_cut_total", COUNTER, ("reason",),
        _sidecar_by(lambda found: found.cut_off),
        "Connections that were ended from here, by reason.",
        "Reasons other than `idle` and `stop`.",
    ),
    keyed(
        "rlmm_sidecar_requests_total", COUNTER, ("method",),
        _sidecar_by(lambda found: found.answered), "Requests that were answered, by method.",
    ),
    keyed(
        "rlmm_sidecar_refusals_total", COUNTER, ("method", "code"), _sidecar_refusals,
        "Requests that were refused, by method and code of the error.",
        "Codes other than `not-ready` and `unknown-partition`.",
    ),
    one(
        "rlmm_sidecar_requests_waiting", GAUGE, _sidecar(lambda found: found.waiting),
        "Writes and waiting reads under way.",
    ),
    one(
        "rlmm_sidecar_waiting_bytes", GAUGE, _sidecar(lambda found: found.waiting_bytes),
        "Memory that they may take, by the sizes of their frames.",
        "Near `sidecar.waiting_bytes_total_max`.",
    ),
    one(
        "rlmm_sidecar_requests_abandoned_total", COUNTER, _sidecar(lambda found: found.abandoned),
        "Waiting requests whose client went away.",
        "It rises: clients wait less than answers take.",
    ),
    one(
        "rlmm_sidecar_received_bytes_total", COUNTER, _sidecar(lambda found: found.bytes_in),
        "Bytes that came.",
    ),
    one(
        "rlmm_sidecar_sent_bytes_total", COUNTER, _sidecar(lambda found: found.bytes_out),
        "Bytes that went.",
    ),
    one(
        "rlmm_sidecar_held_bytes", GAUGE, _sidecar(lambda found: found.held_bytes),
        "Bytes of frames that are not answered yet.", "Near `sidecar.received_bytes_max`.",
    ),
    one(
        "rlmm_sidecar_greeting_bytes", GAUGE, _sidecar(lambda found: found.greeting_bytes),
        "Of these, bytes of who has not said yet who it is.",
        "Near `sidecar.greeting_bytes_max`.",
    ),
    one(
        "rlmm_sidecar_slow_clients_total", COUNTER, _sidecar(lambda found: found.slow_clients),
        "How often a client left its answers until nothing more was read from it.", "It rises.",
    ),
    one(
        "rlmm_sidecar_broker_takeovers_total", COUNTER, _sidecar(lambda found: found.takeovers),
        "How often a broker that was started again took over from its earlier start.",
        "Refusals with the code `superseded` rise as well: two brokers have one id.",
    ),
    one(
        "rlmm_sidecar_brokers_given_up_total", COUNTER,
        _sidecar(lambda found: found.brokers_given_up),
        "How often the partitions of a broker without a connection were given up.",
        "A broker of yours is down for longer than `sidecar.broker_gone_ms`.",
    ),
    one(
        "rlmm_sidecar_unsent_bytes", GAUGE, _sidecar(lambda found: found.unsent_bytes),
        "Bytes of answers that clients have not taken.",
        "Near `sidecar.unsent_bytes_total_max`.",
    ),
)  # fmt: skip

ACCESS: Final[tuple[Metric, ...]] = (
    keyed(
        "rlmm_access_admitted_total", COUNTER, ("role",),
        _access_by(lambda found: found.identified), "How often a client was let in, by role.",
    ),
    keyed(
        "rlmm_access_refused_total", COUNTER, ("reason",),
        _access_by(lambda found: found.refused), "How often a client was not let in, by reason.",
        "It rises: a client has no or an old token, or an intruder tries.",
    ),
    one(
        "rlmm_access_tokens", GAUGE, _access(lambda found: found.tokens), "Tokens that are valid.",
    ),
    one(
        "rlmm_access_reloads_total", COUNTER,
        _access(lambda found: found.tokens_reloads + found.certificate_reloads),
        "How often files of tokens or certificates were taken over.",
    ),
    one(
        "rlmm_access_reload_failures_total", COUNTER,
        _access(lambda found: found.tokens_failures + found.certificate_failures),
        "How often changed files of tokens or certificates could not be used.",
        "It rises: the old ones are in use, and will end.",
    ),
    one(
        "rlmm_access_files_unusable", GAUGE, _access(lambda found: found.files_unusable),
        "Files of tokens or certificates that cannot be used as they are now.",
        "Above 0: the old ones are in use, and a restart would be refused.",
    ),
    one(
        "rlmm_certificate_end_timestamp_seconds", GAUGE,
        _access(lambda found: found.certificate_not_after_s),
        "When the service's certificate ends, in seconds since 1970.",
        "Less than two weeks ahead.",
    ),
    keyed(
        "rlmm_tls_handshakes_total", COUNTER, ("listener", "outcome"), _handshakes,
        "TLS handshakes by listener and by how they ended: `done`; `refused` by TLS, a certificate "
        "or a version for instance; `hung-up`, `timed-out`; `displaced` by newer ones.",
        "`refused` rises: certificates do not fit, or a client speaks without TLS. `timed-out` and "
        "`displaced` rise: a client connects and is silent.",
    ),
    keyed(
        "rlmm_access_client_connections", GAUGE, ("client",),
        _clients(lambda found: found.connections),
        "Connections of each client that was given rights, by its name, over all listeners.",
        "Near `access.client_connections_max`.",
    ),
    keyed(
        "rlmm_access_client_connections_refused_total", COUNTER, ("client",),
        _clients(lambda found: found.connections_refused),
        "Connections of a client that were one too many.", "It rises.",
    ),
    keyed(
        "rlmm_access_client_requests_refused_total", COUNTER, ("client",),
        _clients(lambda found: found.requests_refused),
        "Requests of a client beyond `access.client_requests_per_second_max`.", "It rises.",
    ),
    one(
        "rlmm_audit_entries_lost_total", COUNTER, _access(lambda found: found.audit_lost),
        "Entries of the audit log that were not written, as too many waited for the stream.",
        "It rises: the reader of the log lines is too slow, or many clients are refused at once.",
    ),
)  # fmt: skip

HTTP: Final[tuple[Metric, ...]] = (
    keyed(
        "rlmm_http_requests_total", COUNTER, ("path", "status"), _answers,
        "Requests by HTTP, by path and status; 499: the client went away.", "Status 500.",
    ),
    one(
        "rlmm_http_connections", GAUGE, lambda scrape: scrape.http.connections,
        "Connections open now.", "Near `http.connections_max`.",
    ),
    one(
        "rlmm_http_connections_accepted_total", COUNTER, lambda scrape: scrape.http.accepted,
        "Connections that came.",
    ),
    one(
        "rlmm_http_connections_refused_total", COUNTER, lambda scrape: scrape.http.refused,
        "Connections that were one too many, as all others had a request under way.",
        "It rises: probes may be among them.",
    ),
    keyed(
        "rlmm_http_connections_cut_total", COUNTER, ("reason",),
        lambda scrape: {(reason,): scrape.http.cut_off[reason] for reason in CUT_OFF},
        "Connections that were ended from here: `full`, the longest idle made room; `head`, no "
        "request came in time; `slow`, an answer was not taken in time.",
        "`full` rises: a client opens connections and does not ask.",
    ),
)  # fmt: skip
