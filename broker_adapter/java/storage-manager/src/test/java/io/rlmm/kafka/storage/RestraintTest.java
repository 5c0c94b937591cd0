package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.junit.jupiter.api.Test;

/** A failure is told after a moment, since who consumes asks again at once. */
class RestraintTest extends Fixture {
    private static final int HELD = 4;
    private static final int LONG_MS = 120_000;
    private static final int LOG_BYTES = 20_000;

    private static long millis(Callable<?> work) throws Exception {
        long begunNs = System.nanoTime();
        work.call();
        return (System.nanoTime() - begunNs) / 1_000_000;
    }

    /** A manager whose segment was copied, and has lost its manifest. */
    private RlmmRemoteStorageManager damaged(int waitMs) throws Exception {
        RlmmRemoteStorageManager manager = manager(inFolder("fetch.failure.wait.ms", waitMs));
        copied(manager, Samples.log(LOG_BYTES));
        Files.delete(folder.resolve("tier").resolve(Samples.MAIN + ".rsm-manifest"));
        return manager;
    }

    private static RemoteStorageException failed(RlmmRemoteStorageManager manager) {
        RemoteLogSegmentMetadata segment = Samples.segment(LOG_BYTES);
        return assertThrows(RemoteResourceNotFoundException.class, () -> manager.fetchIndex(segment, IndexType.OFFSET));
    }

    private static long held() {
        return Thread.getAllStackTraces().values().stream()
            .filter(stack -> Arrays.stream(stack).anyMatch(frame -> frame.getClassName().endsWith(".Restraint")))
            .count();
    }

    @Test
    void aFailureIsHeldBack() throws Exception {
        RlmmRemoteStorageManager manager = damaged(300);
        assertTrue(millis(() -> failed(manager)) >= 299);
    }

    @Test
    void whatASegmentNeverHadIsToldAtOnce() throws Exception {
        RlmmRemoteStorageManager manager = manager(inFolder("fetch.failure.wait.ms", LONG_MS));
        RemoteLogSegmentMetadata segment = copied(manager, Samples.log(LOG_BYTES));
        assertTrue(DEADLINE_MS > millis(() -> assertThrows(
            RemoteResourceNotFoundException.class, () -> manager.fetchIndex(segment, IndexType.TRANSACTION))));
    }

    @Test
    void aFewAreHeldBackAndOthersAreToldAtOnceAndAnInterruptEndsIt() throws Exception {
        RlmmRemoteStorageManager manager = damaged(LONG_MS);
        ExecutorService readers = Executors.newFixedThreadPool(HELD);
        try {
            List<Future<RemoteStorageException>> failing = new ArrayList<>();
            for (int number = 0; number < HELD; number++) {
                failing.add(readers.submit(() -> failed(manager)));
            }
            until(() -> held() == HELD);
            assertTrue(millis(() -> failed(manager)) < DEADLINE_MS);
            assertEquals(HELD, held());
            readers.shutdownNow();
            for (Future<RemoteStorageException> one : failing) {
                one.get(DEADLINE_MS, TimeUnit.MILLISECONDS);
            }
        } finally {
            readers.shutdownNow();
        }
    }
}
