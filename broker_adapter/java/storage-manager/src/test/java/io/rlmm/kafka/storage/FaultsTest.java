package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.storage.FakeS3.Reaction;
import io.rlmm.kafka.storage.objects.FolderStore;
import io.rlmm.kafka.storage.objects.ObjectStore;
import io.rlmm.kafka.storage.objects.TransientException;
import java.lang.management.BufferPoolMXBean;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Whatever fails on the way: no manifest, and nothing else that stays. */
class FaultsTest extends Fixture {
    private static final int LOG_BYTES = 12 * MIB;

    @Test
    void aFaultAtAnyStepOfACopyLeavesNothing() throws Exception {
        byte[] log = Samples.log(200_000);
        LogSegmentData data = Samples.files(folder.resolve("files"), log, true);
        int steps = 0;
        for (int failing = 0; failing <= steps; failing++) {
            FaultyStore store = new FaultyStore(new FolderStore(folder.resolve("tier")), failing);
            try (RlmmRemoteStorageManager manager = new RlmmRemoteStorageManager()) {
                manager.begin(Settings.read(inFolder("compression.enabled", true, "chunk.size", 65_536)), store);
                if (failing == steps && failing > 0) {
                    manager.copyLogSegmentData(Samples.segment(log.length), data);
                    assertEquals(3, files().size());
                } else {
                    assertThrows(RemoteStorageException.class,
                        () -> manager.copyLogSegmentData(Samples.segment(log.length), data));
                    assertEquals(List.of(), files(), "step " + failing);
                }
            }
            if (failing == 0) {
                // Three objects: begun and finished, four chunks, five indexes, a manifest.
                steps = 3 * 2 + 4 + 5 + 1;
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"BEGIN", "PART", "COMPLETE", "PUT pfx/" + Samples.MAIN + ".indexes",
        "PUT pfx/" + Samples.MAIN + ".rsm-manifest"})
    void aRequestThatIsRefusedLeavesNothing(String request) throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket("key.prefix", "pfx/"));
        s3.script = one -> one.startsWith(request) ? Reaction.DENY : Reaction.SERVE;
        assertThrows(RemoteStorageException.class, () -> copied(manager, Samples.log(LOG_BYTES)));
        assertEquals(Map.of(), s3.objects);
        assertEquals(Map.of(), s3.uploads);
        s3.script = one -> Reaction.SERVE;
        copied(manager, Samples.log(LOG_BYTES));
        assertEquals(3, s3.objects.size());
    }

    @Test
    void theManifestIsTheLastThatIsWritten() throws Exception {
        copied(manager(inBucket()), Samples.log(LOG_BYTES));
        assertEquals(List.of("BEGIN " + Samples.MAIN + ".log", "PART " + Samples.MAIN + ".log",
            "PART " + Samples.MAIN + ".log", "PART " + Samples.MAIN + ".log", "COMPLETE " + Samples.MAIN + ".log",
            "PUT " + Samples.MAIN + ".indexes", "PUT " + Samples.MAIN + ".rsm-manifest"), s3.requests);
    }

    @Test
    void aFaultThatPassesIsNotNoticed() throws Exception {
        byte[] log = Samples.log(LOG_BYTES);
        RlmmRemoteStorageManager manager = manager(inBucket());
        List<String> seen = new ArrayList<>();
        s3.script = one -> {
            synchronized (seen) {
                seen.add(one);
                return seen.size() % 2 == 1 ? Reaction.FAIL : Reaction.SERVE;
            }
        };
        RemoteLogSegmentMetadata segment = copied(manager, log);
        assertArrayEquals(log, all(manager.fetchLogSegment(segment, 0)));
    }

    @Test
    void aCopyWhoseRequestHangsEndsAtItsDeadline() throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket("request.write.timeout.ms", 300));
        s3.script = one -> one.startsWith("PUT") ? Reaction.HANG : Reaction.SERVE;
        RemoteStorageException told = assertThrows(RemoteStorageException.class,
            () -> copied(manager, Samples.log(1_000)));
        assertTrue(told.getMessage().contains("deadline"), told.getMessage());
        assertEquals(1, s3.count("DELETE-THESE"));
        // "Retriable" would keep a broker of 4.3 from ending what it had begun.
        assertSame(RemoteStorageException.class, told.getClass());
    }

    @Test
    void aDeletionThatFailsIsToldAndMayBeRepeated() throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket("request.delete.timeout.ms", 2_000));
        RemoteLogSegmentMetadata segment = copied(manager, Samples.log(1_000));
        s3.script = one -> Reaction.DENY;
        assertThrows(RemoteStorageException.class, () -> manager.deleteLogSegmentData(segment));
        assertEquals(3, s3.objects.size());
        s3.script = one -> Reaction.SERVE;
        manager.deleteLogSegmentData(segment);
        assertEquals(Map.of(), s3.objects);
    }

    @ParameterizedTest
    @CsvSource({"DENY_KEYS,AccessDenied,false", "SLOW_KEYS,SlowDown,true"})
    void whyAKeyWasNotDeletedDecidesWhetherItIsWorthAnotherTry(Reaction reaction, String why, boolean isTransient)
            throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket());
        RemoteLogSegmentMetadata segment = copied(manager, Samples.log(1_000));
        s3.script = one -> one.startsWith("DELETE-THESE") ? reaction : Reaction.SERVE;
        RemoteStorageException told = assertThrows(RemoteStorageException.class,
            () -> manager.deleteLogSegmentData(segment));
        assertTrue(told.getMessage().contains(Samples.MAIN + ".log: " + why), told.getMessage());
        assertEquals(isTransient && !Boolean.getBoolean("oldest.api"),
            told.getClass().getSimpleName().startsWith("Retriable"));
        assertEquals(3, s3.objects.size());
    }

    @Test
    void whatIsDamagedIsNotFoundOrToldByItsName() throws Exception {
        RlmmRemoteStorageManager manager = manager(inFolder("compression.enabled", true, "fetch.timeout.ms", 20_000));
        RemoteLogSegmentMetadata segment = copied(manager, Samples.log(100_000));
        Path log = folder.resolve("tier").resolve(Samples.MAIN + ".log");
        byte[] whole = Files.readAllBytes(log);
        byte[] bytes = whole.clone();
        bytes[bytes.length / 2] ^= 4;
        Files.write(log, bytes);
        assertTrue(assertThrows(java.io.IOException.class, () -> all(manager.fetchLogSegment(segment, 0)))
            .getMessage().contains(".log: chunk 0"));
        Files.write(log, java.util.Arrays.copyOf(whole, 100));
        assertTrue(assertThrows(java.io.IOException.class, () -> all(manager.fetchLogSegment(segment, 0)))
            .getMessage().contains("100 bytes at 0"));
        // What failed is not kept: as soon as it is right, it is read.
        Files.write(log, whole);
        assertEquals(100_000, all(manager.fetchLogSegment(segment, 0)).length);
        Files.delete(log);
        assertEquals(100_000, all(manager.fetchLogSegment(segment, 0)).length);
        RlmmRemoteStorageManager other = manager(inFolder("fetch.timeout.ms", 20_000));
        assertThrows(java.io.IOException.class, () -> all(other.fetchLogSegment(segment, 0)));
        Path manifest = folder.resolve("tier").resolve(Samples.MAIN + ".rsm-manifest");
        Files.writeString(manifest, "{\"version\":\"3\"}");
        RlmmRemoteStorageManager third = manager(inFolder("fetch.timeout.ms", 20_000));
        RemoteStorageException told = assertThrows(RemoteStorageException.class,
            () -> third.fetchLogSegment(segment, 0));
        assertTrue(told.getMessage().contains("version: 3"), told.getMessage());
        assertFalse(told instanceof RemoteResourceNotFoundException);
    }

    @Test
    void aBucketThatRefusesIsNotSaidToBeWithoutTheSegment() throws Exception {
        RlmmRemoteStorageManager manager = manager(inBucket());
        for (Reaction reaction : new Reaction[] {Reaction.DENY, Reaction.NO_BUCKET}) {
            s3.script = one -> reaction;
            RemoteStorageException told = assertThrows(RemoteStorageException.class,
                () -> manager.fetchLogSegment(Samples.segment(100), 0));
            assertFalse(told instanceof RemoteResourceNotFoundException, reaction.toString());
        }
        s3.script = one -> Reaction.SERVE;
        assertInstanceOf(RemoteResourceNotFoundException.class, assertThrows(RemoteStorageException.class,
            () -> manager.fetchLogSegment(Samples.segment(100), 0)));
    }

    @Test
    void aFolderThatIsGoneHasNotLostItsSegments() throws Exception {
        RlmmRemoteStorageManager manager = manager(inFolder("fetch.timeout.ms", 20_000));
        RemoteLogSegmentMetadata segment = Samples.segment(10);
        Files.delete(folder.resolve("tier"));
        assertFalse(assertThrows(RemoteStorageException.class, () -> manager.fetchLogSegment(segment, 0))
            instanceof RemoteResourceNotFoundException);
        assertThrows(RemoteStorageException.class, () -> manager.deleteLogSegmentData(segment));
        assertThrows(RemoteStorageException.class, () -> copied(manager, Samples.log(10)));
        assertFalse(Files.exists(folder.resolve("tier")));
    }

    @ParameterizedTest
    @ValueSource(strings = {"a/b.log", "b.log"})
    void aFolderThatGoesAwayInACopyIsNotMadeAgain(String key) throws Exception {
        Path tier = folder.resolve("tier");
        FolderStore store = new FolderStore(tier);
        ObjectStore.Sink sink = store.create(key, 10);
        sink.write(new byte[3], 0, 3);
        // As a mount that goes, with all that is below it.
        Files.move(tier, folder.resolve("elsewhere"));
        assertThrows(TransientException.class, sink::finish);
        assertThrows(TransientException.class, () -> store.create(key, 10));
        sink.abandon();
        assertFalse(Files.exists(tier));
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void whatIsLargeGoesThroughAFolderInPieces(boolean isRead) throws Exception {
        FolderStore store = new FolderStore(folder.resolve("tier"));
        Files.write(folder.resolve("tier").resolve("large"), Samples.log(16 * MIB));
        BufferPoolMXBean outside = ManagementFactory.getPlatformMXBeans(BufferPoolMXBean.class).stream()
            .filter(one -> one.getName().equals("direct")).findFirst().orElseThrow();
        CompletableFuture<Long> kept = new CompletableFuture<>();
        // A thread has memory outside the heap for the largest array that it ever gave to a channel.
        Thread thread = new Thread(() -> {
            long before = outside.getMemoryUsed();
            try {
                if (isRead) {
                    assertArrayEquals(Samples.log(16 * MIB), store.read("large", 0, 16 * MIB));
                } else {
                    ObjectStore.Sink sink = store.create("copy", 16 * MIB);
                    sink.write(Samples.log(16 * MIB + 5), 5, 16 * MIB);
                    sink.finish();
                    assertArrayEquals(Arrays.copyOfRange(Samples.log(16 * MIB + 5), 5, 16 * MIB + 5),
                        store.readWhole("copy", 16 * MIB));
                }
                kept.complete(outside.getMemoryUsed() - before);
            } catch (Throwable error) {
                kept.completeExceptionally(error);
            }
        });
        thread.start();
        assertTrue(kept.get(DEADLINE_MS, TimeUnit.MILLISECONDS) < MIB, kept.toString());
    }

    @Test
    void whatIsUnfinishedLiesWhereOthersLookForIt() throws Exception {
        FolderStore store = new FolderStore(folder.resolve("tier"));
        ObjectStore.Sink sink = store.create("a/b.log", 10);
        sink.write(new byte[3], 0, 3);
        assertTrue(files().get(0).matches("\\.rlmm-writing/[0-9a-f]{32}/a/b\\.log"), files().toString());
        sink.abandon();
        assertEquals(List.of(), files());
    }

    @Test
    void aKeyThatLeadsOutOfTheFolderIsRefused() {
        FolderStore store = new FolderStore(folder.resolve("tier"));
        assertThrows(java.io.IOException.class, () -> store.create("../elsewhere", 1));
        assertThrows(java.io.IOException.class, () -> store.delete(List.of("/etc/passwd")));
    }
}
