"""
Rebuild: metadata is made from manifests, where the metadata topic is lost.

    rebuild(tier, file, options)      writes a file of events, and reports the difference
    apply(tier, file, options)        publishes the events that the metadata lacks

A set of objects becomes the start and the finish of a copy, where its manifest, its log and its
indexes exist with the lengths of the manifest; nothing is invented for other sets. All overlapping
sets come back by the time of their events: of two copies readers find the one that began last, as
they did unless the two finished in the other order.

Invariants:

- The rebuild brings back no segment whose deletion is in the metadata, the history of the topic, a
  snapshot or a backup; it reports the segment.
- The application publishes nothing that contradicts the metadata just before, or that could
  replace a segment that the metadata has and the file has not.
- The application publishes no event twice: the same command continues a stopped application.

May be imported by `rlmm.cli.tier_maintenance`.

- `apply`: The whole application.
- `apply_steps`: The events of a file that are still to be published, in groups.
- `bucket_reader`: The sets of a store, a user partition at a time.
- `decision`: The comparison of objects and metadata, one user partition at a time.
- `deleted_segments`: Deletions in the topic, in a snapshot, in a backup.
- `document`: The file of events, written and read.
- `manifests`: A unit of work: sets of objects, their manifests read, segments recovered.
- `publishing`: Events published through a log or through a service.
- `rebuild`: The whole rebuild.
- `report`: The reports of both.
"""
