package io.rlmm.kafka.link;

import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * Things to be done later, in one thread that ends with its manager.
 *
 * <p>CompletableFuture's own delays are not used: their thread belongs to the JVM and never ends.
 */
public final class Timer {
    private static final Runnable NOTHING = () -> { };
    private final ScheduledThreadPoolExecutor executor;

    public Timer(OwnThreads threads) {
        executor = new ScheduledThreadPoolExecutor(1, task -> threads.make("timer", task));
        executor.setRemoveOnCancelPolicy(true);
        executor.setExecuteExistingDelayedTasksAfterShutdownPolicy(false);
    }

    /** Does it after so long; never, once this is closed. */
    public Runnable after(long delayMs, Runnable task) {
        try {
            Future<?> scheduled = executor.schedule(task, delayMs, TimeUnit.MILLISECONDS);
            return () -> scheduled.cancel(false);
        } catch (RejectedExecutionException closed) {
            return NOTHING;
        }
    }

    public void close() {
        executor.shutdownNow();
    }
}
