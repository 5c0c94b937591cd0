package io.rlmm.kafka.metadata;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * How long a listing that must not fail may be waited for. Pure; times are System.nanoTime's.
 *
 * <p>A broker lists what a deleted topic has in the tier exactly once, on the one thread that applies
 * all its metadata, one partition after the other. Giving up at once would leave the objects there
 * for ever, and waiting anew for each partition would hold the broker up for hours. So each thread
 * has a store of time, which is spent on listings that get no answer and comes back slowly. What
 * other partitions are answered meanwhile does not fill it: a part of the metadata may be out of
 * reach for long while the rest is answered.
 */
final class Patience {
    /** So many times longer than it was waited for does it take until the time is there again. */
    private static final long RETURN = 10;
    private final long wholeNs;
    private final long leastNs;
    /** When each thread has all of it again, if it does not wait any more. */
    private final Map<Long, Long> whole = new HashMap<>();

    Patience(long wholeMs, long leastMs) {
        wholeNs = TimeUnit.MILLISECONDS.toNanos(wholeMs);
        leastNs = TimeUnit.MILLISECONDS.toNanos(leastMs);
    }

    /** How long this thread may wait that begins to do so now. */
    synchronized long forNs(long thread, long timeNs) {
        return Math.max(leastNs, wholeNs - spentNs(thread, timeNs));
    }

    /** It waited in vain. */
    synchronized void waited(long thread, long sinceNs, long untilNs) {
        long spent = Math.min(wholeNs, spentNs(thread, sinceNs) + untilNs - sinceNs);
        whole.values().removeIf(timeNs -> timeNs - untilNs <= 0);
        whole.put(thread, untilNs + spent * RETURN);
    }

    private long spentNs(long thread, long timeNs) {
        Long againNs = whole.get(thread);
        return againNs == null ? 0 : Math.max(0, (againNs - timeNs) / RETURN);
    }
}
