"""
Metadata made anew from what the objects say of themselves, for where the metadata topic is lost.

    rebuild(tier, file, options)      a file of events to look at, and the difference to the present
    apply(tier, file, options)        what of it is missing is published

By module, bottom up:

    sets        PURE. a segment's objects as a listing has them, and what was read of its manifest
    deciding    PURE. objects against metadata, one user partition at a time
    document    PURE. the file of events, line by line, both ways
    steps       PURE. what of a file is still to be published, what contradicts, what goes together
    report      PURE. what both tell of what they did
    manifests   a unit of work: manifests read, segments recovered
    past        what was deleted, as far as anybody knows: the topic, a snapshot, a backup
    bucket      the sets of a store, a user partition at a time
    building    the whole of a rebuild
    publishing  events out: by a log of our own, or by a service
    applying    the whole of an application

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
"""
