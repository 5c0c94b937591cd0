"""Variables of the environment that are called as their flags are."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import Context


class CalledAsFlag(click.Option):
    """
    A flag whose value has another name in the program: its variable is called as the flag is.

    Click would call it by the name that nobody but the program knows, and a variable that is named
    as the flag is would be passed over in silence.
    """

    def resolve_envvar_value(self, ctx: Context) -> str | None:
        if ctx.auto_envvar_prefix is None:
            return None
        flag = max(self.opts, key=len).removeprefix("--").replace("-", "_").upper()
        return os.environ.get(f"{ctx.auto_envvar_prefix}_{flag}") or None


class ExplicitFlag(CalledAsFlag):
    """
    A flag by which something is destroyed or published: on the command line, or not said at all. A
    variable that was left in a container must not delete.
    """

    def resolve_envvar_value(self, ctx: Context) -> str | None:
        del ctx
        return None
