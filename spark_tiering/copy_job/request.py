"""The request of a copy job: values, with no secret among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rlmm.errors import ConfigError
from spark_tiering.copy_job.execution import WaveSize
from spark_tiering.copy_plan.reasons import CopyMode
from spark_tiering.copy_plan.rules import Budgets, RequestCosts, SegmentSelection
from spark_tiering.execution.settings import ExecutionSettings
from spark_tiering.executor.tasks import CopyOptions
from spark_tiering.executor.throttle import UNBOUND
from spark_tiering.stores.s3_settings import S3Settings

if TYPE_CHECKING:
    from spark_tiering.executor.throttle import PaceLimits
    from spark_tiering.segment_sources.opening import SourceSettings
    from spark_tiering.stores.opening import StoreSettings
    from spark_tiering.tier_metadata.opening import AccessSettings

NO_BROKER: Final = -1
"""Broker id of archives: no broker has it, so their copies are not taken for a broker's."""
WAVE_BYTES: Final = 64 * 2**30
START_AT_ONCE: Final = 64
"""Events on their way at once, in archives: the log makes one write of those that come together.
When one fails, or the driver dies, a copy may be finished above an open one. That costs nothing:
its own three objects were verified, brokers never see this log, jobs and readers go by the ranges
that finished copies hold, and a later job completes the open copy. Adopted copies go one by one."""
SMALL_UNITS_OF_SLOT: Final = 256
SMALL_BYTES_OF_SLOT: Final = 512 * 2**20
"""Copies that are small take less time than the beginning and the end of a wave."""
WAVE_UNITS_OF_SLOT: Final = 4
"""Copies on their way for each slot: no slot idles for long, a driver that dies leaves few."""


@dataclass(frozen=True, slots=True)
class ClusterAccess:
    bootstrap_servers: str
    command_config: str = ""
    """The path of a Java `client.properties`."""
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class WaitLimits:
    publish_s: float = 30.0
    """For the verdict on an event, and for answers of the metadata."""
    ready_s: float = 60.0
    """For metadata that is not ready, before anything is begun."""
    unit_s: float = 3600.0

    def __post_init__(self) -> None:
        if not min(self.publish_s, self.ready_s, self.unit_s) > 0:
            msg = f"waits have to be positive, got {self}"
            raise ConfigError(msg)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A requested copy job; offline without a *cluster*. *pace* is the whole job's."""

    mode: CopyMode
    source: SourceSettings
    metadata: AccessSettings
    store: StoreSettings
    prefix: str = ""
    cluster: ClusterAccess | None = None
    filters: SegmentSelection = field(default_factory=SegmentSelection)
    budgets: Budgets = field(default_factory=Budgets)
    options: CopyOptions = field(default_factory=CopyOptions)
    pace: PaceLimits = UNBOUND
    engine: ExecutionSettings = field(default_factory=ExecutionSettings)
    broker_id: int = NO_BROKER
    waits: WaitLimits = field(default_factory=WaitLimits)
    stop_file: str = ""
    time_limit_s: float | None = None
    wave_bytes: int = WAVE_BYTES
    wave_units: int | None = None
    """None: by the slots of the engine."""

    def __post_init__(self) -> None:
        if self.mode is CopyMode.ADOPT and self.cluster is None:
            msg = "copies that brokers adopt need the cluster: name it by --bootstrap-server"
            raise ConfigError(msg)

    @property
    def costs(self) -> RequestCosts:
        """Return the requests that follow from how the store is written to."""
        # Who resumes a copy, or sends an object in parts, looks before and after it.
        if isinstance(self.store, S3Settings):
            return RequestCosts(self.store.single_put_bytes, self.store.part_bytes, 2)
        return RequestCosts(checks_of_object=2)

    def wave_size(self, slots: int) -> WaveSize:
        slots = max(1, slots)
        units = self.wave_units or slots * WAVE_UNITS_OF_SLOT
        if self.wave_units is not None or self.mode is CopyMode.ADOPT:
            return WaveSize(units, self.wave_bytes)
        small_units, small_bytes = slots * SMALL_UNITS_OF_SLOT, slots * SMALL_BYTES_OF_SLOT
        return WaveSize(units, self.wave_bytes, small_units, small_bytes, START_AT_ONCE)
