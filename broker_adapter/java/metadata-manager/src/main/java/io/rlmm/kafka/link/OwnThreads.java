package io.rlmm.kafka.link;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The threads of one manager, by name; all of them end with it. */
public final class OwnThreads {
    private final String suffix;
    private final List<Thread> made = new ArrayList<>();

    /** Threads that are named after their broker. */
    public OwnThreads(String suffix) {
        this.suffix = suffix;
    }

    /** A thread that is not started; a daemon, so that a manager that is never closed keeps no JVM. */
    public synchronized Thread make(String what, Runnable task) {
        made.removeIf(thread -> thread.getState() == Thread.State.TERMINATED);
        Thread thread = new Thread(task, "rlmm-" + what + "-" + suffix);
        thread.setDaemon(true);
        made.add(thread);
        return thread;
    }

    private synchronized List<Thread> all() {
        return List.copyOf(made);
    }

    /**
     * Waits until all of them have ended, as long as given; false where one has not.
     *
     * <p>The calling thread is left out: a close from a thread of ours must not wait for itself.
     */
    public boolean join(long timeoutMs) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
        boolean isInterrupted = false;
        boolean allEnded = true;
        for (Thread thread : all()) {
            if (thread == Thread.currentThread()) {
                continue;
            }
            long left = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
            try {
                thread.join(Math.max(1, left));
            } catch (InterruptedException error) {
                isInterrupted = true;
            }
            allEnded &= !thread.isAlive();
        }
        if (isInterrupted) {
            Thread.currentThread().interrupt();
        }
        return allEnded;
    }
}
