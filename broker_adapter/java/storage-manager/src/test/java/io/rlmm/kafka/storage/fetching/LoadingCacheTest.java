package io.rlmm.kafka.storage.fetching;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Whatever befalls a load: nobody waits for it in vain, and the next one who asks gets another. */
class LoadingCacheTest {
    private static final int DEADLINE_S = 20;

    static Throwable[] failures() {
        return new Throwable[] {
            // Not the OutOfMemoryError that it would be, which would end JUnit where it is let through.
            new InternalError("unable to create native thread"), new RejectedExecutionException("closed")};
    }

    private static void fail(Throwable failure) {
        if (failure instanceof Error error) {
            throw error;
        }
        throw (RuntimeException) failure;
    }

    @ParameterizedTest
    @MethodSource("failures")
    void aLoadForWhichThereIsNoThreadIsToldToAllAndNotKept(Throwable failure) throws Exception {
        AtomicReference<LoadingCache<String, String>> cache = new AtomicReference<>();
        AtomicReference<Future<String>> shared = new AtomicReference<>();
        Executor without = task -> {
            // Somebody else asks for it before it is known that it cannot be begun.
            shared.set(cache.get().get("key", 1, () -> "never"));
            fail(failure);
        };
        AtomicReference<Executor> threads = new AtomicReference<>(without);
        cache.set(new LoadingCache<>(100, task -> threads.get().execute(task), String::length));
        assertSame(failure, assertThrows(failure.getClass(), () -> cache.get().get("key", 1, () -> "never")));
        assertSame(failure, assertThrows(
            ExecutionException.class, () -> shared.get().get(DEADLINE_S, TimeUnit.SECONDS)).getCause());
        assertFalse(cache.get().has("key"));
        threads.set(Runnable::run);
        assertEquals("there", cache.get().get("key", 1, () -> "there").get(DEADLINE_S, TimeUnit.SECONDS));
    }

    @ParameterizedTest
    @MethodSource("failures")
    void whatCannotBeWeighedIsToldAndNotKept(Throwable failure) throws Exception {
        LoadingCache<String, String> cache = new LoadingCache<>(100, Runnable::run, value -> {
            if (value.isEmpty()) {
                fail(failure);
            }
            return value.length();
        });
        Future<String> load = cache.get("key", 1, () -> "");
        assertSame(failure, assertThrows(
            ExecutionException.class, () -> load.get(DEADLINE_S, TimeUnit.SECONDS)).getCause());
        assertEquals("there", cache.get("key", 1, () -> "there").get(DEADLINE_S, TimeUnit.SECONDS));
    }
}
