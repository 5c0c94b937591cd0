package io.rlmm.kafka.link;

import java.util.concurrent.ThreadLocalRandom;

/** Pauses that grow from the first to the last, each a little different from the one before. */
public record Pauses(long firstMs, long lastMs) {
    private static final double JITTER = 0.2;

    /** The pause after so many failures in a row, 1 at least. */
    public long afterMs(int failures) {
        long pause = Math.min(lastMs, firstMs << Math.min(failures - 1, 20));
        // Many brokers lose their connections at the same moment; they are not to come back so.
        return Math.round(pause * ThreadLocalRandom.current().nextDouble(1 - JITTER, 1 + JITTER));
    }
}
