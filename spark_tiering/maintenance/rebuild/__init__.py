"""
Metadata made anew from what the objects say of themselves, for where the metadata topic is lost.

    rebuild(tier, file, options)      a file of events to look at, and the difference to the present
    apply(tier, file, options)        what of it is missing is published

By module, bottom up:

    object_sets       PURE. a segment's objects as listed, and what was read of its manifest
    decision          PURE. objects against metadata, one user partition at a time
    document          PURE. the file of events, line by line, both ways
    apply_steps       PURE. what of a file is still to be published, and what goes together
    report            PURE. what both tell of what they did
    manifests         a unit of work: manifests read, segments recovered
    deleted_segments  what was deleted, as far as anybody knows: the topic, a snapshot, a backup
    bucket_reader     the sets of a store, a user partition at a time
    rebuild           the whole of a rebuild
    publishing        events out: by a log of our own, or by a service
    apply             the whole of an application

Which events, and in which order. A set of objects becomes a start and a finish of its copy, where
its manifest, its log and its indexes are there with the lengths that the manifest says. Nothing is
invented for a set that is not whole. Sets that overlap are all brought back, as brokers had them:
by the time of their events, so that of two copies of the same records the one that was begun last
is found, as it was unless the two were finished the other way round.

Invariants:

- Nothing is brought back whose deletion the present, the topic's history, a snapshot or a backup
  knows of; it is named.
- Nothing is published that contradicts the metadata as it is just before, or that could take the
  place of a segment that the metadata has and the file has not.
- What is in the metadata already is not published again: an application that was broken off is gone
  on with by the same command.

May be imported by `rlmm.cli.tier_maintenance`.

"""
