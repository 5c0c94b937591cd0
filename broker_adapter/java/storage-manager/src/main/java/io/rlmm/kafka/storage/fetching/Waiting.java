package io.rlmm.kafka.storage.fetching;

import io.rlmm.kafka.storage.objects.TransientException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Waits for others' work, up to a deadline. */
public final class Waiting {
    private Waiting() { }

    /** The outcome. An interrupt is thrown, and stays set for the owner of the thread. */
    public static <T> T forIt(Future<T> work, long millis, String what) throws IOException, ExecutionException {
        try {
            return work.get(millis, TimeUnit.MILLISECONDS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException(what + ": the thread was interrupted");
        } catch (TimeoutException error) {
            throw new TransientException(what + ": not there within " + millis + " ms", error);
        } catch (CancellationException error) {
            throw new InterruptedIOException(what + ": given up, the storage manager is closed");
        }
    }
}
