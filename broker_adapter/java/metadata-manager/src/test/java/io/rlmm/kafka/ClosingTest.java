package io.rlmm.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.FakeService.Reaction;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The end: prompt whatever the service does, with every future told and no thread left. */
class ClosingTest extends Fixture {
    private static final long PROMPT_MS = 1_500;

    private static void assertPrompt(RlmmRemoteLogMetadataManager manager) {
        long took = millis(manager::close);
        assertTrue(took < PROMPT_MS, "took " + took);
        assertEquals(List.of(), PointsTest.ours());
    }

    @Test
    void closeIsPromptWithoutAService() {
        RlmmRemoteLogMetadataManager manager = manager(configs());
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        assertPrompt(manager);
    }

    @Test
    void closeIsPromptWhileAServiceTakesTheConnectionAndSaysNothing() throws Exception {
        service.script(request -> Reaction.KEEP_SILENT);
        RlmmRemoteLogMetadataManager manager = manager();
        until(() -> service.methods().contains("hello"));
        assertPrompt(manager);
    }

    @Test
    void whoWaitsIsTold() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.script(request -> Reaction.KEEP_SILENT);
        CompletableFuture<Void> added = manager.addRemoteLogSegmentMetadata(started(0));
        CompletableFuture<Throwable> listed = new CompletableFuture<>();
        Thread listing = new Thread(() -> listed.complete(
            assertThrows(RuntimeException.class, () -> manager.listRemoteLogSegments(ORDERS))));
        listing.start();
        until(() -> service.methods().contains("list_segments") && service.methods().contains("add_segment"));
        assertPrompt(manager);
        assertInstanceOf(IllegalStateException.class, failureOf(added));
        listing.join(DEADLINE_MS);
        assertInstanceOf(IllegalStateException.class, listed.getNow(null));
        assertThrows(IllegalStateException.class, () -> manager.highestOffsetForEpoch(ORDERS, 0));
    }

    @Test
    void whoWaitsBetweenTwoAttemptsIsToldAsWell() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.with(CLUSTER, state -> {
            state.loading.add(PointsTest.key(ORDERS));
            state.retryAfterMs = 20_000;
        });
        CompletableFuture<Void> added = manager.addRemoteLogSegmentMetadata(started(0));
        CompletableFuture<Throwable> listed = new CompletableFuture<>();
        Thread listing = new Thread(() -> listed.complete(
            assertThrows(RuntimeException.class, () -> manager.listRemoteLogSegments(ORDERS))));
        listing.start();
        until(() -> service.methods().contains("list_segments") && service.methods().contains("add_segment"));
        manager.isReady(ORDERS); // Behind both, so that their answers have come.
        assertPrompt(manager);
        assertInstanceOf(IllegalStateException.class, failureOf(added));
        listing.join(PROMPT_MS);
        assertInstanceOf(IllegalStateException.class, listed.getNow(null));
    }

    @Test
    void closeFromWithinAFutureDoesNotWaitForItself() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        CompletableFuture<Long> took = manager.addRemoteLogSegmentMetadata(started(0))
            .thenApply(nothing -> millis(manager::close));
        assertTrue(took.get() < PROMPT_MS);
        until(() -> PointsTest.ours().isEmpty());
    }

    @Test
    void whoAsksFromWithinAFutureIsAnswered() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        CompletableFuture<Boolean> listed = manager.addRemoteLogSegmentMetadata(started(0)).thenApply(nothing -> {
            try {
                return manager.listRemoteLogSegments(ORDERS).hasNext();
            } catch (org.apache.kafka.server.log.remote.storage.RemoteStorageException error) {
                throw new AssertionError(error);
            }
        });
        assertTrue(listed.get());
    }

    @Test
    void closeMayBeCalledTwiceAndBeforeEverything() {
        RlmmRemoteLogMetadataManager manager = new RlmmRemoteLogMetadataManager();
        manager.close();
        manager.close();
        manager.configure(configs());
        assertThrows(IllegalStateException.class, () -> manager.highestOffsetForEpoch(ORDERS, 0));
        assertEquals(List.of(), PointsTest.ours());
    }
}
