package io.rlmm.kafka.metadata;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** One store of time for each thread: partitions that are deleted one by one share it. */
class PatienceTest {
    private static final long MS = 1_000_000;
    private final Patience patience = new Patience(30_000, 300);

    private long left(long thread, long nowMs) {
        return patience.forNs(thread, nowMs * MS) / MS;
    }

    private void waited(long thread, long sinceMs, long untilMs) {
        patience.waited(thread, sinceMs * MS, untilMs * MS);
    }

    @Test
    void theFirstListingHasAllOfItAndLaterOnesWhatIsLeft() {
        assertEquals(30_000, left(1, 1_000));
        waited(1, 1_000, 11_000);
        assertEquals(20_000, left(1, 11_000));
        waited(1, 11_000, 31_000);
        assertEquals(300, left(1, 31_000 + 1));
    }

    @Test
    void itComesBackSlowly() {
        waited(1, 0, 30_000);
        assertEquals(300, left(1, 32_000));
        assertEquals(15_000, left(1, 30_000 + 150_000));
        assertEquals(30_000, left(1, 30_000 + 300_000));
    }

    @Test
    void aThreadThatAlwaysWaitsIsHeldUpForASmallPartOfItsTime() {
        long nowMs = 0;
        long waitedMs = 0;
        while (nowMs < 3_600_000) {
            long waitMs = left(1, nowMs);
            waited(1, nowMs, nowMs + waitMs);
            waitedMs += waitMs;
            nowMs += waitMs + 3_000; // What is answered in between.
        }
        assertEquals(0.1, (double) waitedMs / nowMs, 0.03);
    }

    @Test
    void anotherThreadHasItsOwn() {
        waited(1, 0, 30_000);
        assertEquals(30_000, left(2, 40_000));
    }
}
