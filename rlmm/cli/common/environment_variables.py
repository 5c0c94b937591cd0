"""Environment variables named after flags."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import Context


class CalledAsFlag(click.Option):
    """
    A flag whose parameter has another name: its variable is named after the flag.

    Click would derive the variable from the parameter's name and ignore the one named after the
    flag.
    """

    def resolve_envvar_value(self, ctx: Context) -> str | None:
        if ctx.auto_envvar_prefix is None:
            return None
        flag = max(self.opts, key=len).removeprefix("--").replace("-", "_").upper()
        return os.environ.get(f"{ctx.auto_envvar_prefix}_{flag}") or None


class ExplicitFlag(CalledAsFlag):
    """
    A flag that destroys or publishes: it counts only on the command line, never as a variable. A
    variable that was left in a container must not delete.
    """

    def resolve_envvar_value(self, ctx: Context) -> str | None:
        del ctx
        return None
