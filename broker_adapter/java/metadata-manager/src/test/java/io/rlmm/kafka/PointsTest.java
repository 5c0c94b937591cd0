package io.rlmm.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.errors.ReplicaNotAvailableException;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadataManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteState;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.junit.jupiter.api.Test;

/** What Kafka's own tests expect of a metadata manager: one test for each point, see README.md. */
class PointsTest extends Fixture {

    @Test
    void point01ConfigureWaitsForNobodyAndCountsOnce() throws Exception {
        assertTrue(millis(() -> manager(configs())) < 2_000);
        RlmmRemoteLogMetadataManager manager = ready();
        manager.configure(Map.of());
        copied(manager, 0);
        assertHolds(manager, 0);
    }

    @Test
    void point02WithoutAnyCallbackItStartsByItselfAndKeepsTrying() throws Exception {
        assertEquals(
            List.of(RemoteLogMetadataManager.class), List.of(RlmmRemoteLogMetadataManager.class.getInterfaces()));
        RlmmRemoteLogMetadataManager manager = manager(configs());
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        assertFalse(manager.isReady(ORDERS));
        service.start();
        until(() -> manager.isReady(ORDERS));
    }

    @Test
    void point03CallsRightAfterConfigureWaitBrieflyAndBeforeItAreIllegal() {
        RlmmRemoteLogMetadataManager bare = new RlmmRemoteLogMetadataManager();
        assertThrows(IllegalStateException.class, () -> bare.highestOffsetForEpoch(ORDERS, 0));
        assertThrows(IllegalStateException.class, () -> bare.addRemoteLogSegmentMetadata(started(0)));
        assertFalse(bare.isReady(ORDERS));
        RlmmRemoteLogMetadataManager manager = manager(configs());
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        long took = millis(() -> assertThrows(
            ReplicaNotAvailableException.class, () -> manager.remoteLogSegmentMetadata(ORDERS, 0, 0)));
        assertTrue(took < 2_000, "took " + took);
    }

    @Test
    void point04WhatIsAcknowledgedIsAnswered() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        service.script(request -> request.method().equals("add_segment") && service.of("add_segment").size() == 1
            ? FakeService.Reaction.BE_BUSY : FakeService.Reaction.ANSWER);
        CompletableFuture<Void> added = manager.addRemoteLogSegmentMetadata(started(0));
        await(added);
        assertEquals(2, service.of("add_segment").size(), "done before the service said that it is stored");
        assertEquals(started(0), manager.listRemoteLogSegments(ORDERS).next());
        await(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertHolds(manager, 0);
    }

    @Test
    void point05AWriteBeforeThePartitionIsReadyWaitsForIt() throws Exception {
        service.with(CLUSTER, state -> state.loading.add(key(ORDERS)));
        RlmmRemoteLogMetadataManager manager = manager();
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        CompletableFuture<Void> added = manager.addRemoteLogSegmentMetadata(started(0));
        until(() -> service.of("add_segment").size() > 1);
        assertFalse(added.isDone());
        service.with(CLUSTER, state -> state.loading.clear());
        await(added);
        assertEquals(started(0), manager.listRemoteLogSegments(ORDERS).next());
    }

    @Test
    void point06AWriteForAPartitionThatIsNotAssignedFailsAndIsStored() throws Exception {
        RlmmRemoteLogMetadataManager manager = manager();
        manager.onPartitionLeadershipChanges(Set.of(OTHERS), Set.of());
        Throwable failure = failureOf(manager.addRemoteLogSegmentMetadata(started(0)));
        assertTrue(failure.getMessage().contains("stored at"), failure.getMessage());
        manager.onPartitionLeadershipChanges(Set.of(), Set.of(ORDERS));
        until(() -> manager.isReady(ORDERS));
        assertEquals(started(0), manager.listRemoteLogSegments(ORDERS).next());
    }

    @Test
    void point07UnassignedIsNotFoundAndLoadingIsNotAvailable() throws Exception {
        service.with(CLUSTER, state -> state.loading.add(key(ORDERS)));
        RlmmRemoteLogMetadataManager manager = manager();
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.remoteLogSegmentMetadata(ORDERS, 0, 0));
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.remoteLogSize(ORDERS, 0));
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.listRemoteLogSegments(ORDERS, -1));
        assertFalse(manager.isReady(ORDERS));
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        assertThrows(ReplicaNotAvailableException.class, () -> manager.remoteLogSegmentMetadata(ORDERS, 0, 0));
        assertThrows(ReplicaNotAvailableException.class, () -> manager.highestOffsetForEpoch(ORDERS, 0));
        assertThrows(ReplicaNotAvailableException.class, () -> manager.listRemoteLogSegments(ORDERS, 0));
        assertFalse(manager.isReady(ORDERS));
    }

    @Test
    void point08ReadinessComesByItselfAndIsNeverWaitedFor() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        assertFalse(manager.listRemoteLogSegments(ORDERS).hasNext(), "an empty history is ready, too");
        service.script(request -> FakeService.Reaction.KEEP_SILENT);
        assertFalse(manager.isReady(ORDERS));
        // A service that is known not to answer is not asked again by those who only want to know.
        long took = millis(() -> {
            for (int times = 0; times < 100; times++) {
                assertFalse(manager.isReady(ORDERS));
            }
        });
        assertTrue(took < 1_000, "100 answers took " + took);
        service.script(request -> FakeService.Reaction.ANSWER);
        until(() -> manager.isReady(ORDERS));
    }

    @Test
    void point09AssignmentsMayBeEmptyAndRepeatedAndLedOrFollowed() throws Exception {
        RlmmRemoteLogMetadataManager manager = manager();
        manager.onPartitionLeadershipChanges(Set.of(), Set.of());
        for (int times = 0; times < 20; times++) {
            manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of(OTHERS));
            manager.onPartitionLeadershipChanges(Set.of(OTHERS), Set.of(ORDERS));
        }
        manager.onStopPartitions(Set.of());
        manager.onStopPartitions(Set.of(started(0).topicIdPartition(), unknown()));
        manager.onPartitionLeadershipChanges(Set.of(), Set.of(ORDERS));
        until(() -> manager.isReady(ORDERS) && manager.isReady(OTHERS));
        copied(manager, 0);
        assertHolds(manager, 0);
    }

    @Test
    void point10WhatOneBrokerWritesAnotherOneIsAnswered() throws Exception {
        RlmmRemoteLogMetadataManager leader = ready();
        Map<String, Object> configs = configs();
        configs.put("broker.id", BROKER + 1);
        RlmmRemoteLogMetadataManager follower = manager(configs);
        follower.onPartitionLeadershipChanges(Set.of(), Set.of(ORDERS));
        copied(leader, 0);
        until(() -> follower.isReady(ORDERS));
        assertHolds(follower, 0);
        assertEquals(Optional.of(99L), follower.highestOffsetForEpoch(ORDERS, 0));
    }

    @Test
    void point11ANewInstanceKnowsWhatWasAcknowledged() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        manager.close();
        RlmmRemoteLogMetadataManager next = manager(configs());
        next.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> next.isReady(ORDERS));
        assertHolds(next, 0);
        Set<String> instances = new java.util.HashSet<>();
        service.of("hello").forEach(one -> instances.add(key(((Map<?, ?>) one.args().get(0)).get("instance"))));
        assertEquals(2, instances.size(), "each start has a name of its own");
    }

    @Test
    void point12TheClusterIsNamed() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        Map<String, Object> configs = configs();
        configs.put("cluster.id", "dddddddddddddddddddddd");
        RlmmRemoteLogMetadataManager elsewhere = manager(configs);
        elsewhere.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> elsewhere.isReady(ORDERS));
        assertEquals(Optional.empty(), elsewhere.remoteLogSegmentMetadata(ORDERS, 0, 5));
        Map<?, ?> said = (Map<?, ?>) service.of("hello").get(0).args().get(0);
        assertEquals("127.0.0.1:9092", said.get("bootstrap"));
    }

    @Test
    void point13SeveralManagersLiveInOneProcess() throws Exception {
        RlmmRemoteLogMetadataManager first = ready();
        List<RlmmRemoteLogMetadataManager> all = new ArrayList<>(List.of(first));
        for (int broker = 2; broker < 4; broker++) {
            Map<String, Object> configs = configs();
            configs.put("broker.id", broker);
            all.add(manager(configs));
        }
        for (RlmmRemoteLogMetadataManager one : all) {
            one.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
            until(() -> one.isReady(ORDERS));
        }
        first.close();
        copied(all.get(1), 0);
        assertHolds(all.get(2), 0);
    }

    @Test
    void point14NoThreadSurvivesClose() throws Exception {
        service.start();
        until(() -> ours().isEmpty());
        RlmmRemoteLogMetadataManager manager = manager(configs());
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> manager.isReady(ORDERS));
        copied(manager, 0);
        assertFalse(ours().isEmpty());
        manager.close();
        assertEquals(List.of(), ours());
    }

    @Test
    void point15WhatComesBackEqualsWhatWasWritten() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        List<RemoteLogSegmentMetadata> written = new ArrayList<>();
        for (Optional<CustomMetadata> custom : List.of(
                Optional.<CustomMetadata>empty(), Optional.of(new CustomMetadata(new byte[0])),
                Optional.of(new CustomMetadata(new byte[] {1, 2, 3})))) {
            int number = written.size();
            RemoteLogSegmentMetadata segment = new RemoteLogSegmentMetadata(
                id(number), 5, Long.MAX_VALUE, -1, Integer.MAX_VALUE, Long.MIN_VALUE + number, 0,
                Optional.empty(), RemoteLogSegmentState.COPY_SEGMENT_STARTED, Map.of(0, 5L, 7, 60L, 9, 61L));
            await(manager.addRemoteLogSegmentMetadata(segment));
            RemoteLogSegmentMetadataUpdate update = new RemoteLogSegmentMetadataUpdate(
                id(number), 77, custom, RemoteLogSegmentState.COPY_SEGMENT_FINISHED, 3);
            await(manager.updateRemoteLogSegmentMetadata(update));
            written.add(segment.createWithUpdates(update));
        }
        List<RemoteLogSegmentMetadata> listed = new ArrayList<>();
        manager.listRemoteLogSegments(ORDERS, 7).forEachRemaining(listed::add);
        assertEquals(written, listed);
        assertEquals("orders", listed.get(0).remoteLogSegmentId().topicIdPartition().topic());
    }

    @Test
    void point16ArgumentsAreRefusedBeforeAnythingIsSent() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        int sent = service.methods().size();
        assertThrows(NullPointerException.class, () -> manager.addRemoteLogSegmentMetadata(null));
        assertThrows(NullPointerException.class, () -> manager.updateRemoteLogSegmentMetadata(null));
        assertThrows(NullPointerException.class, () -> manager.putRemotePartitionDeleteMetadata(null));
        assertThrows(NullPointerException.class, () -> manager.remoteLogSegmentMetadata(null, 0, 0));
        assertThrows(NullPointerException.class, () -> manager.listRemoteLogSegments(null));
        assertThrows(NullPointerException.class, () -> manager.onStopPartitions(null));
        RemoteLogSegmentMetadata late = started(0).createWithUpdates(finished(0));
        assertThrows(IllegalArgumentException.class, () -> manager.addRemoteLogSegmentMetadata(late));
        RemoteLogSegmentMetadataUpdate early = update(0, RemoteLogSegmentState.COPY_SEGMENT_STARTED);
        assertThrows(IllegalArgumentException.class, () -> manager.updateRemoteLogSegmentMetadata(early));
        assertEquals(Optional.empty(), manager.remoteLogSegmentMetadata(ORDERS, -1, 0));
        assertEquals(sent, service.methods().stream().filter(one -> !one.equals("ping")).count());
    }

    @Test
    void point17APartitionIsGoneWhenItsDeletionIsFinished() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        for (RemotePartitionDeleteState state : List.of(
                RemotePartitionDeleteState.DELETE_PARTITION_MARKED,
                RemotePartitionDeleteState.DELETE_PARTITION_STARTED)) {
            await(manager.putRemotePartitionDeleteMetadata(deletion(state)));
            assertHolds(manager, 0);
        }
        await(manager.putRemotePartitionDeleteMetadata(
            deletion(RemotePartitionDeleteState.DELETE_PARTITION_FINISHED)));
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.remoteLogSegmentMetadata(ORDERS, 0, 5));
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.listRemoteLogSegments(ORDERS));
    }

    @Test
    void point18EveryStateAndEveryAnswerPassesUnchanged() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        for (int number = 0; number < 3; number++) {
            copied(manager, number);
        }
        await(manager.addRemoteLogSegmentMetadata(started(3)));
        assertEquals(Optional.of(299L), manager.highestOffsetForEpoch(ORDERS, 0));
        assertEquals(4 * 1_024L, manager.remoteLogSize(ORDERS, 0));
        assertEquals(Optional.empty(), manager.remoteLogSegmentMetadata(ORDERS, 0, 305));
        await(manager.updateRemoteLogSegmentMetadata(update(0, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)));
        assertEquals(
            RemoteLogSegmentState.DELETE_SEGMENT_STARTED, manager.listRemoteLogSegments(ORDERS).next().state());
        await(manager.updateRemoteLogSegmentMetadata(update(0, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)));
        assertEquals(
            started(1).remoteLogSegmentId(), manager.listRemoteLogSegments(ORDERS).next().remoteLogSegmentId());
        Throwable failure = failureOf(manager.updateRemoteLogSegmentMetadata(finished(0)));
        assertInstanceOf(io.rlmm.kafka.metadata.EventRejectedException.class, failure.getCause());
    }

    @Test
    void point19TheNextSegmentWithATransactionIndexIsAskedForAsSuch() throws Exception {
        RlmmRemoteLogMetadataManager manager = ready();
        copied(manager, 0);
        copied(manager, 1);
        service.with(CLUSTER, state -> state.segments.get(key(ORDERS)).values().iterator().next().set(10, true));
        Optional<RemoteLogSegmentMetadata> next = manager.nextSegmentWithTxnIndex(ORDERS, 0, 5);
        assertEquals(100L, next.orElseThrow().startOffset());
        assertEquals(1, service.of("next_segment_with_txn_index").size());
    }

    private static RemotePartitionDeleteMetadata deletion(RemotePartitionDeleteState state) {
        return new RemotePartitionDeleteMetadata(ORDERS, state, 1_700_000_000_900L + state.id(), BROKER);
    }

    private static TopicIdPartition unknown() {
        return new TopicIdPartition(new org.apache.kafka.common.Uuid(8, 8), 0, "unknown");
    }

    static String key(Object value) {
        Object form = value instanceof TopicIdPartition partition
            ? io.rlmm.kafka.events.SegmentForm.partition(partition) : value;
        return HexFormat.of().formatHex(io.rlmm.kafka.wire.Packer.pack(form));
    }

    static List<String> ours() {
        return Thread.getAllStackTraces().keySet().stream()
            .map(Thread::getName).filter(name -> name.startsWith("rlmm-") || name.startsWith("CompletableFutureDelay"))
            .toList();
    }
}
