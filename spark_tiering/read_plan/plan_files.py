"""Files of plans, of either form: the shell around their readers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlmm.errors import ConfigError
from spark_tiering.read_plan.document import PlanFault, ReadPlanUnreadable, parse_plan

if TYPE_CHECKING:
    from pathlib import Path

    from spark_tiering.read_plan.plan import FrozenPlan

_PARQUET = b"PAR1"
_BYTES_MAX = 512 * 2**20


def read_plan(file: Path) -> FrozenPlan | ReadPlanUnreadable:
    try:
        with file.open("rb") as opened:
            content = opened.read(_BYTES_MAX + 1)
    except OSError as error:
        msg = f"{file}: {error.strerror or error}"
        raise ConfigError(msg) from error
    if not content.startswith(_PARQUET):
        return parse_plan(content)
    try:
        # Large, and not needed for JSON.
        from spark_tiering.read_plan.parquet import parse_parquet  # noqa: PLC0415
    except ImportError as error:
        detail = f"Parquet cannot be read here, pyarrow is not installed: {error}"
        return ReadPlanUnreadable(PlanFault.NOT_PARQUET, detail)
    return parse_parquet(content)


def require_plan(file: Path) -> FrozenPlan:
    found = read_plan(file)
    if isinstance(found, ReadPlanUnreadable):
        msg = f"{file}: {found}"
        raise ConfigError(msg)
    return found
