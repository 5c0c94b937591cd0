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
 * has one window an outage: it opens with the first listing that cannot be answered, and is forgotten
 * with the next one that is.
 */
final class Patience {
    private final long windowNs;
    private final long leastNs;
    private final Map<Long, Long> windows = new HashMap<>();

    Patience(long windowMs, long leastMs) {
        windowNs = TimeUnit.MILLISECONDS.toNanos(windowMs);
        leastNs = TimeUnit.MILLISECONDS.toNanos(leastMs);
    }

    /** Until when this thread may wait that begins to do so now. */
    synchronized long deadlineNs(long thread, long timeNs) {
        Long end = windows.get(thread);
        return end == null || end - timeNs < leastNs ? timeNs + (end == null ? windowNs : leastNs) : end;
    }

    /** It was not answered at once: the window is open, if it was not before. */
    synchronized void tried(long thread, long sinceNs) {
        windows.putIfAbsent(thread, sinceNs + windowNs);
    }

    /** Somebody was answered: the outage is over, for all. */
    synchronized void answered() {
        windows.clear();
    }
}
