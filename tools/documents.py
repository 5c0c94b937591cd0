"""Writes the generated documents: each function gives the Markdown of one place in a page."""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import click

import rlmm.errors
from rlmm.access.roles import Role
from rlmm.cli.common.config_options import text
from rlmm.cli.main import cli
from rlmm.config.key_table import KEYS
from rlmm.errors import RlmmError
from rlmm.http.routes import ROUTES, AccessRule
from rlmm.inspection.finding_kinds import BY_COMMAND
from rlmm.metadata.outcomes import JAVA_CLASSES, KafkaError, Level, Outcome, outcome_of
from rlmm.metadata.segment import PARTITION_DELETE_TRANSITIONS, TRANSITIONS
from rlmm.metadata.verdicts import Rejected, RejectReason, Undecodable, UndecodableReason
from rlmm.metrics.table import GROUPS
from rlmm.wire.methods import METHODS
from rlmm_conformance.rules import RULE_TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

    from rlmm.config.key_table import Key
    from rlmm.findings.finding import FindingKind
    from rlmm.metadata.verdicts import Verdict

HELP_WIDTH = 96
SHARED_BY_COMMANDS = 4
"""From how many commands on an option is described once for all of them."""
OURS_ALONE = (UndecodableReason.OVERSIZED, UndecodableReason.DAMAGED_BATCH)
"""Reasons that Kafka's decoder never meets: a limit of ours, and what does not get that far."""
_WHO = {
    AccessRule.EVERYBODY: "every client",
    AccessRule.HEALTH: "every client, unless `http.health_open` is false",
    AccessRule.METRICS: "every client, unless `http.metrics_open` is false",
    AccessRule.READER: "role reader",
}
_State = TypeVar("_State", bound=IntEnum)


def commands(
    command: click.Command = cli, name: str = "rlmm", parent: click.Context | None = None
) -> Iterator[click.Context]:
    """Yield every command with a context that knows its full name, groups first."""
    settings = {**command.context_settings, "terminal_width": HELP_WIDTH}
    context = click.Context(command, parent, name, **settings)
    yield context
    if isinstance(command, click.Group):
        for member in command.list_commands(context):
            found = command.get_command(context, member)
            assert found is not None, member
            yield from commands(found, member, context)


def errors(root: type[RlmmError] = RlmmError) -> Iterator[type[RlmmError]]:
    """Yield every error class of `rlmm.errors`, bases first, in the drawn order."""
    yield root
    drawing = rlmm.errors.__doc__ or ""
    for derived in sorted(
        root.__subclasses__(), key=lambda error: drawing.find(f"── {error.__name__}")
    ):
        if derived.__module__.startswith(f"{rlmm.errors.__name__}."):
            yield from errors(derived)


def cli_reference() -> str:
    """Return shared options once, then each command's help, which names shared ones alone."""
    contexts = list(commands())
    counts = Counter(record for context in contexts for record in _records(context).values())
    # Of an option with several texts the most frequent one is shared.
    by_name = {record[0]: record for record, _ in reversed(counts.most_common())}
    shared = {record for record in by_name.values() if counts[record] >= SHARED_BY_COMMANDS}
    sections = [_shared_options(sorted(shared)), *(_section(one, shared) for one in contexts)]
    return "\n" + "\n".join(sections) + "\n"


def _records(context: click.Context) -> dict[click.Option, tuple[str, str]]:
    """Return the line of help of each option that is shown."""
    parameters = context.command.get_params(context)
    options = [one for one in parameters if isinstance(one, click.Option)]
    records = {option: option.get_help_record(context) for option in options}
    return {option: record for option, record in records.items() if record is not None}


def _shared_options(shared: list[tuple[str, str]]) -> str:
    formatter = click.HelpFormatter(width=HELP_WIDTH)
    formatter.write_dl(shared, col_max=36)
    return f"## Common options\n\n```text\n{formatter.getvalue()}```\n"


def _section(context: click.Context, shared: Set[tuple[str, str]]) -> str:
    """Return the help of one command; options that many commands share are named alone."""
    left_out = [one for one, record in _records(context).items() if record in shared]
    for option in left_out:
        option.hidden = True
    usage = context.get_help()
    for option in left_out:
        option.hidden = False
    names = ", ".join(f"`{max(one.opts, key=len)}`" for one in left_out)
    return f"## `{context.command_path}`\n\n```text\n{usage}\n```\n\nCommon options: {names}.\n"


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown, between an empty line and two line ends."""
    lines = (heads, ["---"] * len(heads), *rows)
    return "".join(f"\n| {' | '.join(map(str, line))} |" for line in lines) + "\n\n"


def yes_or_no(fact: bool) -> str:
    return "yes" if fact else "no"


def errors_reference() -> str:
    rows = [
        (
            f"`{error.code}`", f"`{error.__name__}`", yes_or_no(error.retriable), error.exit_code,
            first_paragraph(error).replace("|", "\\|"),
        )
        for error in errors()
    ]  # fmt: skip
    return table(("code", "class", "retriable", "exit code", "meaning"), rows)


def first_paragraph(error: type[RlmmError]) -> str:
    return " ".join((error.__doc__ or "").strip().split("\n\n")[0].split())


def configuration_reference(*sections: str) -> str:
    rows = [_key_row(key) for key in KEYS.values() if key.section in sections]
    return table(("key, variable, flag", "what it is", "default", "why"), rows)


def _key_row(key: Key) -> tuple[str, ...]:
    names = (key.path, key.env) if key.is_secret else (key.path, key.env, key.flag)
    spellings = "<br>".join(f"`{name}`" for name in names)
    default = "not set" if key.default is None else f"`{text(key.default)}`"
    reason = key.reason.replace("|", "\\|")
    return spellings, str(key.allowed), default.replace("``", "empty"), reason


def keys_of_the_process() -> str:
    """Return the keys that no cluster has of its own."""
    names = [f"`{key.path}`" for key in KEYS.values() if not key.is_of_cluster]
    return "\n" + ",\n".join(names) + ".\n\n"


def rules_reference() -> str:
    sections = [
        f"### `{rule}`: {text.title}\n\n"
        f"- **Kafka:** {text.kafka}\n- **rlmm:** {text.rlmm}\n"
        f"- **Why:** {text.reason}\n- **Example:** {text.example}\n"
        for rule, text in RULE_TEXTS.items()
    ]
    return "\n" + "\n".join(sections) + "\n"


def transitions_reference() -> str:
    segments = table(("segment is", "event that is legal"), _transitions(TRANSITIONS))
    heads = ("partition delete is", "event that is in order")
    return segments[:-1] + table(heads, _transitions(PARTITION_DELETE_TRANSITIONS))


def _transitions(legal: Mapping[_State | None, Set[_State]]) -> Iterator[tuple[str, str]]:
    for source, targets in legal.items():
        names = ", ".join(target.name for target in sorted(targets))
        yield "absent" if source is None else source.name, names


def outcomes_reference() -> str:
    verdicts: list[tuple[str, Verdict]] = [
        (f"rejected: {reason}", Rejected(reason, None, None)) for reason in RejectReason
    ]
    verdicts += [
        (f"undecodable: {reason}", Undecodable(reason))
        for reason in UndecodableReason
        if reason not in OURS_ALONE
    ]
    rows = [
        (name, _outcome(verdict, Level.CACHE), _outcome(verdict, Level.STORE))
        for name, verdict in verdicts
    ]
    return table(("verdict", "Kafka's cache", "Kafka's store"), rows)


def _outcome(verdict: Verdict, level: Level) -> str:
    outcome = outcome_of(verdict, level, initialized=True)
    if isinstance(outcome, KafkaError):
        return f"`{JAVA_CLASSES[outcome].rpartition('.')[2]}`"
    return "applied" if outcome is Outcome.APPLIED else "dropped, with a line in the log"


def findings_reference() -> str:
    sections = []
    for command, kinds in BY_COMMAND.items():
        ordered = sorted(kinds, key=lambda one: (-one.severity, one.code))
        sections.append(f"## Found by `rlmm {command}`\n\n" + "\n".join(map(_finding, ordered)))
    return "\n" + "\n".join(sections) + "\n"


def _finding(kind: FindingKind) -> str:
    return (
        f"### {kind.code}\n\n{str(kind.severity).capitalize()}: {kind.title}.\n\n"
        f"- **Why it matters:** {kind.reason}.\n- **What to do:** {kind.fix}.\n"
    )


def metrics_reference() -> str:
    heads = ("name", "type", "labels", "meaning", "when to worry")
    parts = []
    for group, metrics in GROUPS.items():
        rows = (
            (
                f"`{one.name}`", one.kind, ", ".join(f"`{label}`" for label in one.labels),
                one.meaning, one.worry,
            )
            for one in metrics
        )  # fmt: skip
        parts.append(f"\n## {group}\n{table(heads, rows)[:-1]}")
    return "".join(parts) + "\n"


def routes_reference() -> str:
    rows = []
    for route in ROUTES:
        takes = ", ".join(
            f"`{one.name}`" if one.is_required else f"[`{one.name}`]" for one in route.parameters
        )
        body = "" if route.body is None else "a JSON body; "
        who = _WHO[route.asks]
        rows.append((f"`{route.method} {route.path}`", f"{body}{takes}", who, route.summary))
    return table(("path", "takes", "who may ask", "what it answers"), rows)


def roles_reference() -> str:
    rows = [
        (
            f"`{method.name}`",
            *("yes" if role.may(method.role) else "" for role in Role),
            method.meaning,
        )
        for method in METHODS.values()
    ]
    return table(("method", *Role, "what it does"), rows)
