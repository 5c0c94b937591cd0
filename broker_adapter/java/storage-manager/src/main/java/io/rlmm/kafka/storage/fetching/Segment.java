package io.rlmm.kafka.storage.fetching;

import io.rlmm.kafka.storage.layout.Blocks;
import io.rlmm.kafka.storage.layout.ObjectKeys;

/** A segment whose manifest was read. */
final class Segment {
    final ObjectKeys keys;
    final Blocks blocks;
    /** The last block that somebody read; a guess at what is read next, and no more. */
    volatile int lastBlock = -1;
    /** Up to which block it was fetched since somebody began to read it in order; a guess as well. */
    volatile int fetchedTo = -1;

    Segment(ObjectKeys keys, Blocks blocks) {
        this.keys = keys;
        this.blocks = blocks;
    }
}
