"""A broker with both of our plugins, beside a service of ours: a cluster that runs on rlmm."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_tiering.layout.object_names import ObjectKind
from tests.kafka.node import ONE_NODE, STARTED, Node
from tests.kafka.plugin import our_manager, our_storage
from tests.kafka.sidecar import Sidecar
from tests.kafka.tiered import TieredKafka, tiering

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.kafka.jars import Jars
    from tests.kafka.process import ProcessLog

PATIENT_READS = {
    "remote.fetch.max.wait.ms": "20000",
    "rsm.config.fetch.timeout.ms": "15000",
    "rsm.config.request.read.timeout.ms": "15000",
    "rlmm.config.sidecar.lookup.timeout.ms": "10000",
}
"""For tests that want no ERROR: by default a read fails on a machine busy for half a second."""


@dataclass(frozen=True, slots=True)
class PluginKafka(TieredKafka):
    """A broker with our plugins and its service; *store* is the tier's folder, or empty."""

    sidecar: Sidecar
    store: Path

    @property
    def logs(self) -> list[ProcessLog]:
        return [self.node.log, self.sidecar.log]

    def objects(self, topic: str, kind: ObjectKind = ObjectKind.LOG) -> list[Path]:
        found = self.store.glob(f"**/{topic}-*/*/*.{kind}")
        folder = f"{topic}-"
        return sorted(
            path
            for path in found
            if path.parent.parent.name.startswith(folder)
            and len(path.parent.parent.name) == len(folder) + 22  # of no topic with a longer name
        )

    def restart_broker(self, *, is_killed: bool = False) -> None:
        """End the broker, in order or as a power cut would, and start it on the same port."""
        if is_killed:
            self.node.kill()
        else:
            self.node.stop()
        self.node.start()


@contextlib.contextmanager
def plugin_kafka(
    jars: Jars,
    folder: Path,
    plugins: Path,
    *,
    properties: Mapping[str, str] | None = None,
    storage: Mapping[str, str] | None = None,
    is_sidecar_started: bool = True,
) -> Iterator[PluginKafka]:
    store = folder / "tier"
    tier = dict(storage) if storage is not None else our_storage(plugins, store)
    store.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as closing:
        node = Node(jars, folder / "node", properties=ONE_NODE, ready=(STARTED,))
        closing.callback(node.close)
        sidecar = closing.enter_context(Sidecar(folder / "sidecar", node.bootstrap))
        node.properties |= {
            **tiering(store),
            **our_manager(plugins, sidecar.address),
            **tier,
            **(properties or {}),
        }
        node.properties.pop("rsm.config.dir")  # of Kafka's own storage for tests
        if is_sidecar_started:
            sidecar.start()  # it waits for the broker, as the broker does for it
        yield PluginKafka(node.start(), sidecar, store)
