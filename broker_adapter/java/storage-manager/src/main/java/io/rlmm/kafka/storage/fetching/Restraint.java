package io.rlmm.kafka.storage.fetching;

import java.util.concurrent.Semaphore;

/**
 * Holds failures back for a moment. A consumer asks again at once, a thousand times a second, and
 * each time the store is asked and the broker writes an ERROR with its stack.
 */
final class Restraint {
    /** Of the ten threads with which a broker reads for all consumers; more failures pass at once. */
    private static final int HELD_MAX = 4;

    private final long millis;
    private final Semaphore room = new Semaphore(HELD_MAX);

    Restraint(long millis) {
        this.millis = millis;
    }

    /** Returns so long after what failed was begun. An interrupt ends it, and stays set. */
    void hold(long begunNs) {
        long restMs = millis - (System.nanoTime() - begunNs) / 1_000_000;
        if (restMs > 0 && room.tryAcquire()) {
            try {
                Thread.sleep(restMs);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            } finally {
                room.release();
            }
        }
    }
}
