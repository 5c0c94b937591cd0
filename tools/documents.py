"""
Writes the generated documents: each function gives the Markdown between cog markers of one page.
"""

from __future__ import annotations

from collections import Counter
from enum import IntEnum
from typing import TYPE_CHECKING, TypeVar

import click

import rlmm.errors
from rlmm.cli.common.config_options import text
from rlmm.cli.main import cli
from rlmm.config.keys import KEYS
from rlmm.errors import RlmmError
from rlmm.metadata.outcomes import JAVA_CLASSES, KafkaError, Level, Outcome, outcome_of
from rlmm.metadata.segment import PARTITION_DELETE_TRANSITIONS, TRANSITIONS
from rlmm.metadata.verdicts import Rejected, RejectReason, Undecodable, UndecodableReason
from rlmm_conformance.rules import RULE_TEXTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

    from rlmm.config.keys import Key
    from rlmm.metadata.verdicts import Verdict

HELP_WIDTH = 96
SHARED_BY_COMMANDS = 4
"""From how many commands on an option is described once for all of them."""
OURS_ALONE = (UndecodableReason.OVERSIZED, UndecodableReason.DAMAGED_BATCH)
"""Reasons that Kafka's decoder never meets: a limit of ours, and what does not get that far."""
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


def errors_reference() -> str:
    """One row for each error class: code, class, whether waiting helps, exit code, meaning."""
    rows = [
        f"| `{error.code}` | `{error.__name__}` | {'yes' if error.retriable else 'no'} "
        f"| {error.exit_code} | {_first_sentence(error)} |"
        for error in errors()
    ]
    head = ["| code | class | retriable | exit code | meaning |", "| --- | --- | --- | --- | --- |"]
    return "\n" + "\n".join(head + rows) + "\n\n"


def _first_sentence(error: type[RlmmError]) -> str:
    """Return the docstring's first paragraph as one table cell."""
    first_paragraph = (error.__doc__ or "").strip().split("\n\n")[0]
    return " ".join(first_paragraph.split()).replace("|", "\\|")


def configuration_reference(*sections: str) -> str:
    """One row for each key of these sections: spellings, type, default and reason."""
    head = ["| key, variable, flag | what it is | default | why |", "| --- | --- | --- | --- |"]
    rows = [_key_row(key) for key in KEYS.values() if key.section in sections]
    return "\n" + "\n".join(head + rows) + "\n\n"


def _key_row(key: Key) -> str:
    spellings = f"`{key.path}`<br>`{key.env}`<br>`{key.flag}`"
    default = "not set" if key.default is None else f"`{text(key.default)}`"
    reason = key.reason.replace("|", "\\|")
    return f"| {spellings} | {key.allowed} | {default.replace('``', 'empty')} | {reason} |"


def keys_of_the_process() -> str:
    """Return the keys that no cluster has of its own."""
    names = [f"`{key.path}`" for key in KEYS.values() if not key.is_of_cluster]
    return "\n" + ",\n".join(names) + ".\n\n"


def rules_reference() -> str:
    """One section for each named rule in which answers differ from Kafka's."""
    sections = [
        f"### `{rule}`: {text.title}\n\n"
        f"- **Kafka:** {text.kafka}\n- **rlmm:** {text.rlmm}\n"
        f"- **Why:** {text.reason}\n- **Example:** {text.example}\n"
        for rule, text in RULE_TEXTS.items()
    ]
    return "\n" + "\n".join(sections) + "\n"


def transitions_reference() -> str:
    return (
        _transitions("segment is", "event that is legal", TRANSITIONS)
        + _transitions(
            "partition delete is", "event that is in order", PARTITION_DELETE_TRANSITIONS
        )
        + "\n"
    )


def _transitions(left: str, right: str, table: Mapping[_State | None, Set[_State]]) -> str:
    rows = [
        f"| {'absent' if source is None else source.name} "
        f"| {', '.join(target.name for target in sorted(targets))} |"
        for source, targets in table.items()
    ]
    return "\n" + "\n".join([f"| {left} | {right} |", "| --- | --- |", *rows]) + "\n"


def outcomes_reference() -> str:
    """One row for each reason of a verdict: what Kafka's cache and store do where it is given."""
    verdicts: list[tuple[str, Verdict]] = [
        (f"rejected: {reason}", Rejected(reason, None, None)) for reason in RejectReason
    ]
    verdicts += [
        (f"undecodable: {reason}", Undecodable(reason))
        for reason in UndecodableReason
        if reason not in OURS_ALONE
    ]
    head = ["| verdict | Kafka's cache | Kafka's store |", "| --- | --- | --- |"]
    rows = [
        f"| {name} | {_outcome(verdict, Level.CACHE)} | {_outcome(verdict, Level.STORE)} |"
        for name, verdict in verdicts
    ]
    return "\n" + "\n".join(head + rows) + "\n\n"


def _outcome(verdict: Verdict, level: Level) -> str:
    outcome = outcome_of(verdict, level, initialized=True)
    if isinstance(outcome, KafkaError):
        return f"`{JAVA_CLASSES[outcome].rpartition('.')[2]}`"
    return "applied" if outcome is Outcome.APPLIED else "dropped, with a line in the log"
