package io.rlmm.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.FakeService.Reaction;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.ReplicaNotAvailableException;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.junit.jupiter.api.Test;

/** A service that goes away, is silent, refuses, or is there late. */
class OutagesTest extends Fixture {
    /** What a broker's fetch allows, less the reading of the object. */
    private static final long LOOKUP_MS_MAX = 450;

    private long lookup(RlmmRemoteLogMetadataManager manager) {
        return millis(() -> assertThrows(
            ReplicaNotAvailableException.class, () -> manager.remoteLogSegmentMetadata(ORDERS, 0, 0)));
    }

    @Test
    void aLookupEndsWellBeforeTheFetchAndNotAtOnce() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        lookup(manager, "silent", request -> Reaction.KEEP_SILENT);
        lookup(manager, "loading", request -> Reaction.ANSWER);
        service.kill();
        lookup(manager, "gone", request -> Reaction.ANSWER);
    }

    private void lookup(
            RlmmRemoteLogMetadataManager manager, String what,
            java.util.function.Function<FakeService.Request, Reaction> script) {
        service.script(script);
        if (what.equals("loading")) {
            service.with(CLUSTER, state -> state.loading.add(PointsTest.key(ORDERS)));
        }
        assertTrue(lookup(manager) < 1_500, "the first one also loads classes");
        long took = lookup(manager);
        assertTrue(took >= 200 && took < LOOKUP_MS_MAX, what + " took " + took);
    }

    @Test
    void aLookupInAnEmptyHistoryEndsAsSoonAsAnyOther() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        assertEquals(Optional.empty(), manager.remoteLogSegmentMetadata(ORDERS, 0, 0));
        assertFalse(service.of("partition_delete").isEmpty());
        service.script(request -> request.method().equals("partition_delete")
            ? Reaction.KEEP_SILENT : Reaction.ANSWER);
        assertTrue(lookup(manager) < LOOKUP_MS_MAX);
    }

    @Test
    void aRefusalThatDoesNotPassIsPacedAllTheSame() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.script(request -> Reaction.REFUSE_FOR_GOOD);
        long took = millis(() -> assertThrows(
            RemoteStorageException.class, () -> manager.remoteLogSegmentMetadata(ORDERS, 0, 0)));
        assertTrue(took >= 200 && took < 2_000, "took " + took);
    }

    @Test
    void assignmentsAreToldInOrderAndReplayedInFull() throws Exception {
        RlmmRemoteLogMetadataManager manager = manager(configs());
        TopicIdPartition gone = partition(99);
        manager.onPartitionLeadershipChanges(Set.of(ORDERS, gone), Set.of());
        manager.onPartitionLeadershipChanges(Set.of(), Set.of(ORDERS, OTHERS));
        manager.onStopPartitions(Set.of(gone));
        service.start();
        until(() -> manager.isReady(ORDERS) && manager.isReady(OTHERS));
        assertEquals(List.of("hello", "assign"), service.methods().subList(0, 2));
        List<?> told = service.of("assign").get(0).args();
        assertEquals(List.of(), told.get(0));
        assertEquals(2, ((List<?>) told.get(1)).size());
        assertEquals(true, told.get(2));

        service.kill();
        service.with(CLUSTER, state -> state.assigned.clear());
        long took = millis(() -> manager.onStopPartitions(Set.of(OTHERS)));
        took += millis(() -> manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of()));
        assertTrue(took < 100, "took " + took);
        service.start();
        until(() -> manager.isReady(ORDERS));
        assertFalse(manager.isReady(OTHERS));
        List<?> again = service.of("assign").get(1).args();
        assertEquals(1, ((List<?>) again.get(0)).size());
    }

    @Test
    void anAssignmentIsSaidUntilItIsAcceptedAndNobodyIsSentAwayMeanwhile() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.script(request -> request.method().equals("assign") && service.of("assign").size() < 4
            ? Reaction.BE_BUSY : Reaction.ANSWER);
        TopicIdPartition late = partition(5);
        manager.onPartitionLeadershipChanges(Set.of(late), Set.of());
        try {
            manager.highestOffsetForEpoch(late, 0);
        } catch (ReplicaNotAvailableException notYet) {
            assertFalse(notYet.getMessage().isEmpty());
        }
        until(() -> manager.isReady(late));
        assertTrue(manager.isReady(ORDERS));
    }

    @Test
    void anAssignmentIsSaidAgainSoonWhileTheServiceLooksForKafka() throws Exception {
        service.script(request -> request.method().equals("assign") && service.of("assign").size() <= 8
            ? Reaction.LOOK_FOR_KAFKA : Reaction.ANSWER);
        // Eight pauses that doubled on would be eleven seconds, more than is waited for.
        ready();
        assertEquals(9, service.of("assign").size());
    }

    @Test
    void manyPartitionsAreToldInSeveralMessagesThatTakeNothingAway() throws Exception {
        RlmmRemoteLogMetadataManager manager = manager(configs());
        Set<TopicIdPartition> many = new HashSet<>();
        for (int number = 0; number < 2_500; number++) {
            many.add(partition(number));
        }
        manager.onPartitionLeadershipChanges(many, Set.of());
        service.start();
        until(() -> manager.isReady(partition(2_499)) && manager.isReady(partition(0)));
        assertEquals(3, service.of("assign").size());
        assertTrue(service.of("assign").stream().noneMatch(one -> (boolean) one.args().get(2)));
    }

    @Test
    void aListingOfEverythingIsRetriedInside() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        service.kill();
        CompletableFuture<Integer> listed = new CompletableFuture<>();
        Thread deleting = new Thread(() -> {
            try {
                List<RemoteLogSegmentMetadata> all = new ArrayList<>();
                manager.listRemoteLogSegments(ORDERS).forEachRemaining(all::add);
                listed.complete(all.size());
            } catch (RemoteStorageException | RuntimeException error) {
                listed.completeExceptionally(error);
            }
        });
        deleting.start();
        lookup(manager); // So long no answer can come.
        lookup(manager);
        assertFalse(listed.isDone());
        service.start();
        assertEquals(1, listed.get(DEADLINE_MS, java.util.concurrent.TimeUnit.MILLISECONDS));
        deleting.join();
    }

    @Test
    void aListingOfEverythingThatIsRefusedIsRetriedToo() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        AtomicInteger times = new AtomicInteger();
        service.script(request -> request.method().equals("list_segments") && times.getAndIncrement() < 3
            ? Reaction.REFUSE_FOR_GOOD : Reaction.ANSWER);
        assertTrue(manager.listRemoteLogSegments(ORDERS).hasNext());
        assertEquals(4, times.get());
    }

    @Test
    void listingsThatAreAllRefusedHoldABrokerUpOnce() throws Exception {
        service.start();
        Map<String, Object> configs = configs();
        configs.put("sidecar.listing.timeout.ms", 2_000);
        RlmmRemoteLogMetadataManager manager = manager(configs);
        manager.onPartitionLeadershipChanges(Set.of(ORDERS, OTHERS), Set.of());
        until(() -> manager.isReady(ORDERS) && manager.isReady(OTHERS));
        copied(manager, 0);
        service.script(request -> request.method().equals("list_segments") && PointsTest.key(request.args().get(0)).equals(
            PointsTest.key(ORDERS)) ? Reaction.REFUSE_FOR_GOOD : Reaction.ANSWER);
        assertTrue(listing(manager, ORDERS) >= 1_500);
        // What another partition is answered gives no new patience with this one.
        assertFalse(manager.listRemoteLogSegments(OTHERS).hasNext());
        assertTrue(listing(manager, ORDERS) < 1_500);
    }

    private long listing(RlmmRemoteLogMetadataManager manager, TopicIdPartition partition) {
        return millis(() -> assertThrows(
            RemoteStorageException.class, () -> manager.listRemoteLogSegments(partition).hasNext()));
    }

    @Test
    void aListingComesByPagesAndNeverEndsEarly() throws Exception {
        service.with(CLUSTER, state -> state.pageSize = 2);
        service.start();
        Map<String, Object> configs = configs();
        configs.put("sidecar.listing.timeout.ms", 400);
        RlmmRemoteLogMetadataManager manager = manager(configs);
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> manager.isReady(ORDERS));
        for (int number = 0; number < 5; number++) {
            await(manager.addRemoteLogSegmentMetadata(started(number)));
        }
        List<Long> starts = new ArrayList<>();
        manager.listRemoteLogSegments(ORDERS).forEachRemaining(one -> starts.add(one.startOffset()));
        assertEquals(List.of(0L, 100L, 200L, 300L, 400L), starts);
        starts.clear();
        manager.listRemoteLogSegments(ORDERS, 0).forEachRemaining(one -> starts.add(one.startOffset()));
        assertEquals(5, starts.size());

        Iterator<RemoteLogSegmentMetadata> cut = manager.listRemoteLogSegments(ORDERS);
        service.script(request -> Reaction.KEEP_SILENT);
        assertEquals(0L, cut.next().startOffset());
        assertEquals(100L, cut.next().startOffset());
        assertThrows(ReplicaNotAvailableException.class, cut::hasNext);
    }

    @Test
    void whoIsInterruptedHarmsNobodyElse() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        service.script(request -> request.method().equals("segment_for") ? Reaction.KEEP_SILENT : Reaction.ANSWER);
        Thread.currentThread().interrupt();
        assertThrows(
            org.apache.kafka.common.errors.InterruptException.class,
            () -> manager.remoteLogSegmentMetadata(ORDERS, 0, 5));
        assertTrue(Thread.interrupted());
        service.script(request -> Reaction.ANSWER);
        assertHolds(manager, 0);
        assertEquals(1, service.of("hello").size());
    }

    @Test
    void whoseIdAnotherBrokerHasGivesUpAfterAFewTries() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.script(request -> Reaction.SUPERSEDE);
        assertFalse(manager.isReady(ORDERS));
        until(() -> service.of("hello").size() == 3);
        lookup(manager);
        lookup(manager);
        service.script(request -> Reaction.ANSWER);
        lookup(manager);
        assertEquals(3, service.of("hello").size());
    }

    private RlmmRemoteLogMetadataManager quicklyGivingUp() throws Exception {
        service.start();
        Map<String, Object> configs = configs();
        configs.put("sidecar.write.timeout.ms", 1_000);
        configs.put("sidecar.outcome.timeout.ms", 1_000);
        RlmmRemoteLogMetadataManager manager = manager(configs);
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> manager.isReady(ORDERS));
        return manager;
    }

    private static CompletableFuture<?> added(RlmmRemoteLogMetadataManager manager, int count) throws Exception {
        List<CompletableFuture<Void>> added = new ArrayList<>();
        for (int number = 0; number < count; number++) {
            added.add(manager.addRemoteLogSegmentMetadata(started(number)));
        }
        return CompletableFuture.allOf(added.toArray(CompletableFuture[]::new));
    }

    @Test
    void manyEventsAtOnceAreSentSoManyAtATime() throws Exception {
        RlmmRemoteLogMetadataManager manager = quicklyGivingUp();
        service.script(request -> request.method().equals("add_segment") && service.of("add_segment").size() <= 128
            ? Reaction.APPLY_AND_KEEP_SILENT : Reaction.ANSWER);
        CompletableFuture<?> all = added(manager, 3_000);
        until(() -> service.of("add_segment").size() >= 128);
        assertTrue(manager.isReady(ORDERS) && service.of("add_segment").size() == 128);
        service.kill();
        service.start();
        all.get(60, java.util.concurrent.TimeUnit.SECONDS);
        assertEquals(3_000, service.state(CLUSTER).segments.get(PointsTest.key(ORDERS)).size());
    }

    @Test
    void manyEventsThatCannotBeStoredAllEndByOneDeadline() throws Exception {
        RlmmRemoteLogMetadataManager manager = quicklyGivingUp();
        service.kill();
        CompletableFuture<?> all = added(manager, 5_000);
        assertThrows(
            java.util.concurrent.ExecutionException.class,
            () -> all.get(DEADLINE_MS, java.util.concurrent.TimeUnit.MILLISECONDS));
    }

    private static TopicIdPartition partition(int number) {
        return new TopicIdPartition(new Uuid(5, number + 1), new TopicPartition("many", number));
    }
}
