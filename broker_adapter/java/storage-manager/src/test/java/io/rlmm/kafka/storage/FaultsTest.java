package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.storage.FakeS3.Reaction;
import io.rlmm.kafka.storage.objects.FolderStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
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
        assertEquals(!Boolean.getBoolean("oldest.api"), told.getClass().getSimpleName().startsWith("Retriable"));
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

    @Test
    void whatIsUnfinishedLiesWhereOthersLookForIt() throws Exception {
        FolderStore store = new FolderStore(folder.resolve("tier"));
        io.rlmm.kafka.storage.objects.ObjectStore.Sink sink = store.create("a/b.log", 10);
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
