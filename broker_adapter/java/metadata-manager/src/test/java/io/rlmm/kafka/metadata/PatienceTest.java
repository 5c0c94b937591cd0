package io.rlmm.kafka.metadata;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

/** One window for each thread and outage: partitions that are deleted one by one share it. */
class PatienceTest {
    private static final long MS = 1_000_000;
    private final Patience patience = new Patience(30_000, 300);

    private long left(long thread, long nowMs) {
        return patience.deadlineNs(thread, nowMs * MS) / MS - nowMs;
    }

    @Test
    void theFirstListingHasTheWholeWindowAndLaterOnesWhatIsLeft() {
        assertEquals(30_000, left(1, 1_000));
        patience.tried(1, 1_000 * MS);
        assertEquals(20_000, left(1, 11_000));
        patience.tried(1, 11_000 * MS);
        assertEquals(300, left(1, 31_000));
        assertEquals(300, left(1, 500_000));
    }

    @Test
    void anotherThreadHasAWindowOfItsOwn() {
        patience.tried(1, 0);
        assertEquals(30_000, left(2, 40_000));
    }

    @Test
    void anAnswerEndsTheOutageForAll() {
        patience.tried(1, 0);
        patience.answered();
        assertEquals(30_000, left(1, 40_000));
    }
}
