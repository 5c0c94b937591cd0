package io.rlmm.kafka.storage.fetching;

import io.rlmm.kafka.storage.layout.Blocks;
import io.rlmm.kafka.storage.layout.ObjectKeys;

/** A segment whose manifest was read. */
final class Segment {
    final ObjectKeys keys;
    final Blocks blocks;
    /** The last block that a caller read; a guess at the next one, and no more. */
    volatile int lastBlock = -1;
    /** The last block fetched since a caller began to read in order; a guess as well. */
    volatile int fetchedTo = -1;

    Segment(ObjectKeys keys, Blocks blocks) {
        this.keys = keys;
        this.blocks = blocks;
    }
}
