"""Our plugins for a broker, built once for their sources by the Maven project of `make plugin`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kafka.jars import CACHE, HERE, digest, locked, required, run_builder

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = HERE.parent.parent / "broker_adapter" / "java"
METADATA_MANAGER = "metadata-manager"
MANAGER_CLASS = "io.rlmm.kafka.RlmmRemoteLogMetadataManager"
STORAGE_MANAGER = "storage-manager"
STORAGE_CLASS = "io.rlmm.kafka.storage.RlmmRemoteStorageManager"
BUILD_DEADLINE_S = 300


def built(cache: Path = CACHE) -> Path:
    sources = sorted([*PROJECT.glob("pom.xml"), *PROJECT.glob("*/pom.xml")])
    sources += sorted(PROJECT.glob("*/src/main/**/*.*"))
    made = cache / f"plugins-{digest(*(file.read_bytes() for file in sources))}"
    with locked(cache):
        if not (made / "done").is_file():
            (mvn,) = required("mvn")
            command = [
                mvn, "-B", "-q", "-f", str(PROJECT / "pom.xml"), "package",
                "-Dmaven.test.skip=true", f"-Dplugins.build={made}",
            ]  # fmt: skip
            run_builder(command, BUILD_DEADLINE_S, f"Maven could not build {PROJECT}")
            (made / "done").touch()
    return made


def our_manager(plugins: Path, address: str) -> dict[str, str]:
    return {
        "remote.log.metadata.manager.class.name": MANAGER_CLASS,
        "remote.log.metadata.manager.class.path": f"{plugins / METADATA_MANAGER}/*",
        "rlmm.config.sidecar.address": address,
    }


def our_storage(plugins: Path, root: Path) -> dict[str, str]:
    root.mkdir(parents=True, exist_ok=True)
    return {
        "remote.log.storage.manager.class.name": STORAGE_CLASS,
        "remote.log.storage.manager.class.path": f"{plugins / STORAGE_MANAGER}/*",
        "rsm.config.storage.root": str(root),
    }


def our_bucket(plugins: Path, endpoint: str, bucket: str, *, prefix: str = "") -> dict[str, str]:
    return {
        "remote.log.storage.manager.class.name": STORAGE_CLASS,
        "remote.log.storage.manager.class.path": f"{plugins / STORAGE_MANAGER}/*",
        "rsm.config.storage.s3.bucket.name": bucket,
        "rsm.config.storage.s3.endpoint.url": endpoint,
        "rsm.config.storage.s3.region": "us-east-1",
        "rsm.config.storage.s3.path.style.access.enabled": "true",
        "rsm.config.storage.aws.access.key.id": "any",
        "rsm.config.storage.aws.secret.access.key": "any",
        "rsm.config.key.prefix": prefix,
    }
