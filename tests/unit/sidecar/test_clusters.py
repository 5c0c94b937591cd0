"""Whether an engine is the one that a client means, by the identity of its log."""

from types import SimpleNamespace
from typing import Any

import pytest

from rlmm.errors import WrongCluster
from rlmm.log.files.log_folder import UNKNOWN_CLUSTER_ID
from rlmm.sidecar.clusters import Clusters


class NoEngines:
    def all(self) -> tuple[()]:
        return ()

    def of_cluster(self, cluster_id: str) -> None: ...

    def name_of(self, engine: object) -> str:
        raise AssertionError

    def is_learned(self, engine: object) -> bool:
        return False

    def missing(self) -> dict[str, str]:
        return {}

    def accept(self, cluster_id: str, bootstrap: str | None) -> None: ...

    def is_followed(self, engine: object) -> bool:
        return False


def engine(cluster_id: str | None) -> Any:
    identity = None if cluster_id is None else SimpleNamespace(cluster_id=cluster_id)
    return SimpleNamespace(identity=identity)


def test_engine_when_its_log_is_of_another_cluster_then_refused_with_both_ids() -> None:
    """The log's own cluster id decides, and the refusal names both ids."""
    clusters = Clusters(NoEngines(), brokers_max=10)
    with pytest.raises(WrongCluster, match=r"blue.*green"):
        clusters.require_right(engine("green"), "blue")
    assert clusters.require_right(engine("blue"), "blue")
    assert clusters.require_right(engine(UNKNOWN_CLUSTER_ID), "blue")
    assert clusters.require_right(engine("green"), None)
    assert not clusters.require_right(engine(None), "blue")
