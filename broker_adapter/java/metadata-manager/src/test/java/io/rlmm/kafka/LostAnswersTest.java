package io.rlmm.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.FakeService.Reaction;
import io.rlmm.kafka.FakeService.Request;
import io.rlmm.kafka.metadata.EventRejectedException;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.junit.jupiter.api.Test;

/** Events whose answer is lost: stored once, and never failed when they were accepted. */
class LostAnswersTest extends Fixture {

    /** The first request of a method meets this; everything else is answered. */
    private static Function<Request, Reaction> firstOf(String method, Reaction reaction) {
        AtomicInteger times = new AtomicInteger();
        return request -> request.method().equals(method) && times.getAndIncrement() == 0
            ? reaction : Reaction.ANSWER;
    }

    @Test
    void anUpdateThatWasAppliedBeforeTheConnectionBrokeSucceedsAndIsNotRepeated() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        service.script(firstOf("update_segment", Reaction.APPLY_AND_HANG_UP));
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertEquals(1, service.of("update_segment").size());
        assertHolds(manager, 0);
    }

    @Test
    void anUpdateThatWasNotAppliedIsRepeatedEqualInEveryField() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.script(firstOf("add_segment", Reaction.HANG_UP));
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        service.script(firstOf("update_segment", Reaction.HANG_UP));
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertHolds(manager, 0);
        var sent = service.of("update_segment");
        assertEquals(2, sent.size());
        assertEquals(
            PointsTest.key(sent.get(0).args().subList(0, 6)), PointsTest.key(sent.get(1).args().subList(0, 6)));
    }

    @Test
    void anUpdateThatIsNeverAnsweredIsLookedForWhenItsTimeIsUp() throws Exception {
        service.start();
        Map<String, Object> configs = configs();
        configs.put("sidecar.write.timeout.ms", "400");
        RlmmRemoteLogMetadataManager manager = manager(configs);
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> manager.isReady(ORDERS));
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        service.script(firstOf("update_segment", Reaction.APPLY_AND_KEEP_SILENT));
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertHolds(manager, 0);
    }

    @Test
    void anEventOutlivesAnOutage() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.kill();
        until(() -> !manager.isReady(ORDERS));
        CompletableFuture<Void> added = manager.addRemoteLogSegmentMetadata(started(0));
        assertFalse(added.isDone());
        service.start();
        await(added);
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertHolds(manager, 0);
    }

    @Test
    void theEndOfACopyIsTriedWhenAllElseIsGivenUp() throws Exception {
        service.start();
        Map<String, Object> configs = configs();
        configs.put("sidecar.write.timeout.ms", 300);
        configs.put("sidecar.outcome.timeout.ms", 300);
        RlmmRemoteLogMetadataManager manager = manager(configs);
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> manager.isReady(ORDERS));
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        service.kill();
        CompletableFuture<Void> ended = manager.updateRemoteLogSegmentMetadata(finished(0));
        failureOf(manager.addRemoteLogSegmentMetadata(started(1)));
        assertFalse(ended.isDone());
        service.start();
        await(ended);
        assertHolds(manager, 0);
    }

    @Test
    void anEventThatFoundNoLeaderIsSentAgain() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.script(firstOf("add_segment", Reaction.NOT_STORE));
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        service.script(firstOf("update_segment", Reaction.NOT_STORE));
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertEquals(2, service.of("update_segment").size());
        assertHolds(manager, 0);
    }

    @Test
    void anEventThatFindsNoLeaderInItsTimeFailsSaidSo() throws Exception {
        service.start();
        Map<String, Object> configs = configs();
        configs.put("sidecar.write.timeout.ms", 300);
        RlmmRemoteLogMetadataManager manager = manager(configs);
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> manager.isReady(ORDERS));
        service.script(request -> request.method().equals("add_segment") ? Reaction.NOT_STORE : Reaction.ANSWER);
        Throwable failure = failureOf(manager.addRemoteLogSegmentMetadata(started(0)));
        assertInstanceOf(RemoteStorageException.class, failure);
        assertTrue(failure.getMessage().contains("too few replicas"), failure.getMessage());
    }

    @Test
    void anUpdateThatWasStoredBeforeTheServiceFailedSucceedsAndIsNotRepeated() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        service.script(firstOf("update_segment", Reaction.APPLY_AND_FAIL));
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertEquals(1, service.of("update_segment").size());
        assertHolds(manager, 0);
    }

    @Test
    void aRepeatThatIsRefusedSaysNothingOfTheFirstOne() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        AtomicInteger times = new AtomicInteger();
        service.script(request -> {
            if (!request.method().equals("update_segment")) {
                return Reaction.ANSWER;
            }
            return times.getAndIncrement() == 0 ? Reaction.HANG_UP : Reaction.APPLY_AND_REFUSE;
        });
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertHolds(manager, 0);
    }

    @Test
    void whatBecameOfAnEventIsAskedUntilSomebodySays() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        AtomicInteger looks = new AtomicInteger();
        service.script(request -> switch (request.method()) {
            case "update_segment" -> Reaction.APPLY_AND_FAIL;
            case "segment" -> looks.getAndIncrement() < 3 ? Reaction.REFUSE_FOR_GOOD : Reaction.ANSWER;
            default -> Reaction.ANSWER;
        });
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertEquals(1, service.of("update_segment").size());
        assertEquals(4, looks.get());
        assertHolds(manager, 0);
    }

    @Test
    void aDeletionThatSomebodyElseBeganOrEndedHadItsEffect() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        service.script(firstOf("update_segment", Reaction.HANG_UP));
        service.with(CLUSTER, state -> state.segments.get(PointsTest.key(ORDERS)).values().forEach(segment -> {
            segment.set(9, 2L);
            segment.set(3, 77L);
        }));
        await(manager.updateRemoteLogSegmentMetadata(update(0, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)));
        service.script(firstOf("update_segment", Reaction.HANG_UP));
        service.with(CLUSTER, state -> state.segments.get(PointsTest.key(ORDERS)).clear());
        await(manager.updateRemoteLogSegmentMetadata(update(0, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)));
    }

    @Test
    void theEndOfADeletionThatWasAppliedSucceeds() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        service.script(firstOf("update_segment", Reaction.APPLY_AND_HANG_UP));
        await(manager.updateRemoteLogSegmentMetadata(update(0, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)));
        service.script(firstOf("update_segment", Reaction.APPLY_AND_HANG_UP));
        await(manager.updateRemoteLogSegmentMetadata(update(0, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)));
        assertFalse(manager.listRemoteLogSegments(ORDERS).hasNext());
    }

    @Test
    void aFinishBehindWhichTheStateMovedOnFailsWithTheVerdict() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        await(manager.addRemoteLogSegmentMetadata(started(0)));
        service.with(CLUSTER, state -> state.segments.get(PointsTest.key(ORDERS)).values()
            .forEach(segment -> segment.set(9, 2L)));
        service.script(firstOf("update_segment", Reaction.HANG_UP));
        Throwable failure = failureOf(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertInstanceOf(RemoteStorageException.class, failure);
        assertInstanceOf(EventRejectedException.class, failure.getCause());
    }

    @Test
    void aStartOfASegmentThatIsFinishedFailsAsItDoesWithItsAnswer() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        service.script(firstOf("add_segment", Reaction.HANG_UP));
        Throwable failure = failureOf(manager.addRemoteLogSegmentMetadata(started(0)));
        assertInstanceOf(RemoteStorageException.class, failure);
        assertInstanceOf(EventRejectedException.class, failure.getCause());
        assertHolds(manager, 0);
    }

    @Test
    void aRejectedEventFailsWithTheVerdictAsItsCause() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        Throwable failure = failureOf(manager.updateRemoteLogSegmentMetadata(finished(0)));
        EventRejectedException verdict = assertInstanceOf(EventRejectedException.class, failure.getCause());
        assertEquals("unknown-segment", verdict.reason());
        assertEquals("COPY_SEGMENT_FINISHED", verdict.requested());
    }

    @Test
    void aFutureEndsByItsDeadlineWhateverHappens() throws Exception {
        service.start();
        Map<String, Object> configs = configs();
        configs.put("sidecar.write.timeout.ms", 300);
        configs.put("sidecar.outcome.timeout.ms", 600);
        RlmmRemoteLogMetadataManager manager = manager(configs);
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> manager.isReady(ORDERS));
        service.script(request -> Reaction.KEEP_SILENT);
        long begin = System.nanoTime();
        Throwable failure = failureOf(manager.addRemoteLogSegmentMetadata(started(0)));
        assertInstanceOf(RemoteStorageException.class, failure);
        assertTrue(System.nanoTime() - begin < 3_000_000_000L);
    }
}
