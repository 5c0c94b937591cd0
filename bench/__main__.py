"""
`python -m bench NAME...`: the benchmarks by name, one after the other, each with its own options
behind its name. Without a name it lists them with their options.
"""

from __future__ import annotations

import click

from bench import (
    audit,
    broker,
    core,
    data_source,
    decoding,
    engine,
    hostile,
    kafka_log,
    native,
    partition_log,
    rebuild,
    sidecar,
    snapshot,
    spark_copy,
)

COMMANDS = {
    "core": core.main,
    "partition-log": partition_log.main,
    "kafka-log": kafka_log.main,
    "snapshot": snapshot.main,
    "engine": engine.main,
    "sidecar": sidecar.main,
    "hostile": hostile.main,
    "broker": broker.main,
    "spark": spark_copy.main,
    "decoding": decoding.main,
    "data-source": data_source.main,
    "audit": audit.main,
    "rebuild": rebuild.main,
    "native": native.main,
}


class _InOrder(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


@click.group(
    cls=_InOrder,
    commands=COMMANDS,
    chain=True,
    invoke_without_command=True,
    subcommand_metavar="NAME [OPTIONS] [NAME [OPTIONS]]...",
)
@click.pass_context
def main(context: click.Context) -> None:
    """Measure parts of rlmm beside what they are judged by, in one run and side by side."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        for name, command in COMMANDS.items():
            click.echo("")
            with click.Context(command, info_name=name) as each:
                click.echo(command.get_help(each))


if __name__ == "__main__":
    main(prog_name="python -m bench")
