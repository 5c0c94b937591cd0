"""Environment variables named after flags."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click import Context


class CalledAsFlag(click.Option):
    """A flag whose variable has the flag's name, which click would take from the parameter."""

    def resolve_envvar_value(self, ctx: Context) -> str | None:
        if ctx.auto_envvar_prefix is None:
            return None
        flag = max(self.opts, key=len).removeprefix("--").replace("-", "_").upper()
        return os.environ.get(f"{ctx.auto_envvar_prefix}_{flag}") or None


class ExplicitFlag(CalledAsFlag):
    """A flag that only counts on the command line: a leftover variable must not delete."""

    def resolve_envvar_value(self, ctx: Context) -> str | None:
        del ctx
        return None
