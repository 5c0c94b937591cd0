package io.rlmm.kafka.storage.fetching;

import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Threads that requests run on, so that a caller can leave at a deadline or on an interrupt while
 * a socket is silent. None of them outlives {@link #stop} for long.
 */
public final class Workers {
    private static final long IDLE_S = 30;

    private final ThreadPoolExecutor pool;

    private Workers(String name, int core, int most, BlockingQueue<Runnable> queue) {
        AtomicInteger number = new AtomicInteger();
        pool = new ThreadPoolExecutor(core, most, IDLE_S, TimeUnit.SECONDS, queue, task -> {
            Thread thread = new Thread(task, name + "-" + number.incrementAndGet());
            thread.setDaemon(true);
            // Not the broker's: the SDK looks for its own classes by this one.
            thread.setContextClassLoader(Workers.class.getClassLoader());
            return thread;
        });
        // Core threads end as well when nothing is asked for.
        pool.allowCoreThreadTimeOut(true);
    }

    /** As many at once; others wait. */
    public static Workers few(String name, int threads) {
        return new Workers(name, threads, threads, new LinkedBlockingQueue<>());
    }

    /** As many as are asked for: one for each thread of the broker's that copies or deletes. */
    public static Workers unbounded(String name) {
        return new Workers(name, 0, Integer.MAX_VALUE, new SynchronousQueue<>());
    }

    /** Begins a task; a closed pool throws RejectedExecutionException. */
    public <T> FutureTask<T> start(Callable<T> task) {
        FutureTask<T> started = new FutureTask<>(task);
        pool.execute(started);
        return started;
    }

    void execute(Runnable task) {
        pool.execute(task);
    }

    /** Whether a task that no caller waits for would only be in the way. */
    boolean isBusy() {
        return pool.getQueue().size() >= pool.getCorePoolSize();
    }

    /** Takes nothing more, interrupts running tasks, and fails the tasks that were not begun at once. */
    public void stop() {
        for (Runnable task : pool.shutdownNow()) {
            if (task instanceof Future<?> load) {
                load.cancel(false);
            }
        }
    }

    /** Whether all has ended, within that time. */
    public boolean await(long millis) {
        try {
            return pool.awaitTermination(millis, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            return pool.isTerminated();
        }
    }
}
