package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.storage.FakeS3.Reaction;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Interrupts and the end: whoever waits goes on at once, whatever a socket does. */
class EndingTest extends Fixture {
    private static final long PROMPT_MS = 1_500;

    /** Runs a call that hangs, ends it, and tells what it threw and whether the interrupt stayed set. */
    private static final class Caller extends Thread {
        final CompletableFuture<Throwable> threw = new CompletableFuture<>();
        volatile boolean isInterruptedAfterwards = false;
        private final java.util.concurrent.Callable<?> call;

        Caller(java.util.concurrent.Callable<?> call) {
            this.call = call;
            start();
        }

        @Override
        public void run() {
            try {
                call.call();
                threw.complete(null);
            } catch (Throwable error) {
                isInterruptedAfterwards = Thread.currentThread().isInterrupted();
                threw.complete(error);
            }
        }
    }

    @Test
    void anInterruptedCopyReturnsAtOnceAndCleansUpBehindItself() throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket("request.write.timeout.ms", 1_000));
        s3.script = one -> one.startsWith("PUT") ? Reaction.HANG : Reaction.SERVE;
        Caller caller = new Caller(() -> copied(manager, Samples.log(12 * MIB)));
        until(() -> s3.count("PUT") > 0);
        assertTrue(s3.objects.containsKey(Samples.MAIN + ".log"));
        caller.interrupt();
        caller.join(PROMPT_MS);
        assertTrue(caller.threw.getNow(null) instanceof RemoteStorageException, String.valueOf(caller.threw));
        assertTrue(caller.isInterruptedAfterwards);
        until(() -> s3.objects.isEmpty());
        assertEquals(Map.of(), s3.uploads);
    }

    @Test
    void aCopyThatWasWholeWhenItsCallerWentAwayIsTakenAwayToo() throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket());
        CountDownLatch gate = new CountDownLatch(1);
        s3.script = one -> {
            if (one.endsWith("manifest")) {
                // The store stores it, and answers when nobody waits any longer.
                s3.objects.put(one.substring("PUT ".length()), new byte[1]);
                awaitGate(gate);
            }
            return Reaction.SERVE;
        };
        Caller caller = new Caller(() -> copied(manager, Samples.log(1_000)));
        until(() -> s3.objects.size() == 3);
        caller.interrupt();
        caller.join(PROMPT_MS);
        gate.countDown();
        until(() -> s3.count("DELETE-THESE") == 1 && s3.objects.isEmpty());
    }

    @ParameterizedTest
    @ValueSource(strings = {"ABORT", "DELETE-THESE"})
    void anInterruptWhileACopyCleansUpDoesNotEndThat(String cleaning) throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket());
        CountDownLatch gate = new CountDownLatch(1);
        AtomicBoolean isFirst = new AtomicBoolean(true);
        s3.script = one -> {
            if (one.startsWith(cleaning) && isFirst.getAndSet(false)) {
                awaitGate(gate);
                // A client that was interrupted meanwhile does not try again.
                return Reaction.FAIL;
            }
            // Of the second of two objects, so that there is one to be deleted; both in parts.
            return one.startsWith("PUT") || one.startsWith("COMPLETE") && cleaning.equals("ABORT")
                ? Reaction.DENY : Reaction.SERVE;
        };
        Caller caller = new Caller(() -> copied(manager, Samples.log(12 * MIB)));
        until(() -> s3.count(cleaning) == 1);
        caller.interrupt();
        caller.join(PROMPT_MS);
        assertTrue(caller.isInterruptedAfterwards);
        gate.countDown();
        until(() -> s3.count("DELETE-THESE") > 0 && s3.objects.isEmpty() && s3.uploads.isEmpty());
    }

    @Test
    void whoWaitsForAReadThatWasNotBegunHearsOfTheEndAtOnce() throws Exception {
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), Samples.log(1_000));
        RlmmRemoteStorageManager manager = manager(inBucket("fetch.threads", 1, "fetch.timeout.ms", 6 * DEADLINE_MS));
        s3.script = one -> Reaction.HANG;
        Caller first = new Caller(() -> manager.fetchLogSegment(segment, 0));
        until(() -> s3.count("GET") > 0);
        Caller second = new Caller(() -> manager.fetchLogSegment(Samples.another(1_000), 0));
        until(() -> second.getState() == Thread.State.TIMED_WAITING);
        manager.close();
        second.join(DEADLINE_MS);
        assertInstanceOf(RemoteStorageException.class, second.threw.getNow(null));
        first.join(DEADLINE_MS);
    }

    private static void awaitGate(CountDownLatch gate) {
        try {
            gate.await();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void aReaderThatIsInterruptedReturnsAtOnce() throws Exception {
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), Samples.log(1_000));
        RlmmRemoteStorageManager manager = manager(inBucket());
        s3.script = one -> Reaction.HANG;
        Caller caller = new Caller(() -> manager.fetchLogSegment(segment, 0));
        until(() -> s3.count("GET") > 0);
        caller.interrupt();
        caller.join(PROMPT_MS);
        assertTrue(caller.threw.getNow(null) instanceof RemoteStorageException, String.valueOf(caller.threw));
        assertTrue(caller.isInterruptedAfterwards);
    }

    @Test
    void aDeletionThatHangsEndsAtItsDeadline() throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket("request.delete.timeout.ms", 300));
        s3.script = one -> Reaction.HANG;
        long before = System.nanoTime();
        assertThrows(RemoteStorageException.class, () -> manager.deleteLogSegmentData(Samples.segment(9)));
        assertTrue(System.nanoTime() - before < PROMPT_MS * 1_000_000);
    }

    @Test
    void closeEndsWhatRunsAndLeavesNoThread() throws Exception {
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), Samples.log(1_000));
        end();
        begin();
        until(() -> threads().isEmpty());
        RlmmRemoteStorageManager manager = manager(inBucket("request.read.timeout.ms", 60_000));
        s3.script = one -> Reaction.HANG;
        Caller caller = new Caller(() -> manager.fetchLogSegment(segment, 0));
        until(() -> s3.count("GET") > 0);
        long before = System.nanoTime();
        manager.close();
        assertTrue(System.nanoTime() - before < 4_000_000_000L);
        caller.join(DEADLINE_MS);
        assertTrue(caller.threw.getNow(null) instanceof RemoteStorageException, String.valueOf(caller.threw));
        until(() -> threads().isEmpty());
        manager.close();
        assertThrows(IllegalStateException.class, () -> manager.fetchLogSegment(segment, 0));
        assertThrows(IllegalStateException.class, () -> manager.deleteLogSegmentData(segment));
    }

    @Test
    void closeBeforeConfigureIsHarmlessAndLasts() {
        RlmmRemoteStorageManager manager = new RlmmRemoteStorageManager();
        manager.close();
        manager.configure(inFolder());
        assertThrows(IllegalStateException.class, () -> manager.deleteLogSegmentData(Samples.segment(9)));
    }

    @Test
    void aSecondConfigureChangesNothing() throws Exception {
        RlmmRemoteStorageManager manager = manager(inFolder());
        manager.configure(Map.of());
        copied(manager, Samples.log(10));
    }
}
