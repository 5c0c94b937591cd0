"""State that was kept: images and snapshots."""

from __future__ import annotations

from rlmm.errors.root import RlmmError


class ImageCorrupt(RlmmError):
    """A state image that cannot be trusted; none of it was taken over."""

    code = "image-corrupt"


class SnapshotError(RlmmError):
    """A snapshot could not be written, or not be used."""

    code = "snapshot"


class SnapshotCorrupt(SnapshotError):
    """A snapshot file is not what was written; none of it was taken over."""

    code = "snapshot-corrupt"


class SnapshotForeign(SnapshotError):
    """A snapshot belongs to another cluster, topic, partition or partition count."""

    code = "snapshot-foreign"


class SnapshotUnsupported(SnapshotError):
    """A snapshot has a version that this build does not know."""

    code = "snapshot-unsupported"


class SnapshotRefused(SnapshotError):
    """A snapshot was not written, because the disk has too little room left."""

    code = "snapshot-refused"
