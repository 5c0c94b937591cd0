package io.rlmm.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;

/** A fake service, managers that are closed in the end, and the events that tests are made of. */
abstract class Fixture {
    static final String CLUSTER = "cccccccccccccccccccccc";
    static final int BROKER = 1;
    static final long DEADLINE_MS = 5_000;
    static final TopicIdPartition ORDERS =
        new TopicIdPartition(new Uuid(1, 2), new TopicPartition("orders", 3));
    static final TopicIdPartition OTHERS =
        new TopicIdPartition(new Uuid(1, 3), new TopicPartition("others", 0));

    private final List<RlmmRemoteLogMetadataManager> managers = new ArrayList<>();
    Path folder;
    FakeService service;

    @BeforeEach
    void makeService() throws IOException {
        folder = Files.createTempDirectory("rlmm");
        service = FakeService.at(folder.resolve("s"));
    }

    @AfterEach
    void endAll() throws IOException {
        managers.forEach(RlmmRemoteLogMetadataManager::close);
        service.close();
        try (var files = Files.list(folder)) {
            for (Path file : files.toList()) {
                Files.delete(file);
            }
        }
        Files.delete(folder);
    }

    /** What a broker hands over, with a few of the many keys that are not ours. */
    Map<String, Object> configs() {
        Map<String, Object> configs = new HashMap<>();
        configs.put("broker.id", BROKER);
        configs.put("cluster.id", CLUSTER);
        configs.put("log.dir", "data");
        configs.put("remote.log.metadata.common.client.bootstrap.servers", "127.0.0.1:9092");
        configs.put("remote.log.metadata.common.client.security.protocol", "PLAINTEXT");
        configs.put("remote.log.metadata.topic.num.partitions", 5);
        configs.put("remote.log.metadata.topic.replication.factor", (short) 1);
        configs.put("remote.log.metadata.initialization.retry.interval.ms", 100L);
        configs.put("sidecar.address", folder.resolve("s").toString());
        return configs;
    }

    RlmmRemoteLogMetadataManager manager(Map<String, Object> configs) {
        RlmmRemoteLogMetadataManager manager = new RlmmRemoteLogMetadataManager();
        managers.add(manager);
        manager.configure(configs);
        return manager;
    }

    /** One at a service that is there. */
    RlmmRemoteLogMetadataManager manager() throws IOException {
        service.start();
        return manager(configs());
    }

    /** One whose partition is assigned and answered for. */
    RlmmRemoteLogMetadataManager ready() throws IOException {
        RlmmRemoteLogMetadataManager manager = manager();
        manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
        until(() -> manager.isReady(ORDERS));
        return manager;
    }

    static void until(BooleanSupplier fact) {
        until(fact, DEADLINE_MS);
    }

    static void until(BooleanSupplier fact, long deadlineMs) {
        long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(deadlineMs);
        while (!fact.getAsBoolean()) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("what was waited for did not come");
            }
            Thread.onSpinWait();
            try {
                Thread.sleep(5);
            } catch (InterruptedException error) {
                throw new AssertionError(error);
            }
        }
    }

    static RemoteLogSegmentId id(int number) {
        return new RemoteLogSegmentId(ORDERS, new Uuid(9, number));
    }

    static RemoteLogSegmentMetadata started(int number) {
        return started(id(number), number);
    }

    static RemoteLogSegmentMetadata started(RemoteLogSegmentId id, int number) {
        return new RemoteLogSegmentMetadata(
            id, number * 100L, number * 100L + 99, 1_700_000_000_000L, BROKER, 1_700_000_000_000L + number, 1_024,
            Map.of(0, number * 100L));
    }

    static RemoteLogSegmentMetadataUpdate update(int number, RemoteLogSegmentState state) {
        return new RemoteLogSegmentMetadataUpdate(
            id(number), 1_700_000_000_500L + state.id(), Optional.of(new CustomMetadata(new byte[] {1})), state,
            BROKER);
    }

    static RemoteLogSegmentMetadataUpdate finished(int number) {
        return update(number, RemoteLogSegmentState.COPY_SEGMENT_FINISHED);
    }

    static void await(CompletableFuture<Void> future) throws Exception {
        future.get(DEADLINE_MS, TimeUnit.MILLISECONDS);
    }

    static Throwable failureOf(CompletableFuture<Void> future) {
        return assertThrows(
            ExecutionException.class, () -> future.get(DEADLINE_MS, TimeUnit.MILLISECONDS)).getCause();
    }

    /** How long it took, in milliseconds. */
    static long millis(Runnable task) {
        long begin = System.nanoTime();
        task.run();
        return TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - begin);
    }

    static void copied(RlmmRemoteLogMetadataManager manager, int number) throws Exception {
        await(manager.addRemoteLogSegmentMetadata(started(number)));
        await(manager.updateRemoteLogSegmentMetadata(finished(number)));
    }

    static void assertHolds(RlmmRemoteLogMetadataManager manager, int number) throws Exception {
        RemoteLogSegmentMetadata wanted = started(number).createWithUpdates(finished(number));
        assertEquals(Optional.of(wanted), manager.remoteLogSegmentMetadata(ORDERS, 0, number * 100L + 5));
    }
}
