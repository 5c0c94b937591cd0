package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What was copied is read again, from a folder and from a bucket. */
class RoundTripTest extends Fixture {
    private static final int CHUNK_BYTES = 64 * 1024;

    private Map<String, Object> in(String where, Object... pairs) {
        return where.equals("folder") ? inFolder(pairs) : inBucket(pairs);
    }

    private List<String> objects(String where) throws Exception {
        return where.equals("folder") ? files() : List.copyOf(s3.objects.keySet());
    }

    @ParameterizedTest
    @CsvSource({"folder,false,1000003", "folder,true,1000003", "bucket,false,1000003", "bucket,true,1000003",
        "folder,true,131072", "bucket,false,131072", "folder,true,17", "bucket,false,17",
        "bucket,false,12582912", "bucket,true,20000003"})
    void whatWasCopiedIsReadAndDeleted(String where, boolean isCompressed, int size) throws Exception {
        byte[] log = Samples.log(size);
        RlmmRemoteStorageManager manager = manager(in(where, "key.prefix", "pfx/",
            "chunk.size", CHUNK_BYTES, "compression.enabled", isCompressed));
        LogSegmentData data = Samples.files(folder.resolve("files"), log, true);
        RemoteLogSegmentMetadata segment = Samples.segment(size);
        segment = Samples.with(segment, manager.copyLogSegmentData(segment, data));
        assertEquals(List.of("pfx/" + Samples.MAIN + ".indexes", "pfx/" + Samples.MAIN + ".log",
            "pfx/" + Samples.MAIN + ".rsm-manifest"), objects(where));
        assertEquals(Map.of(), s3.uploads);
        assertArrayEquals(log, all(manager.fetchLogSegment(segment, 0)));
        for (int[] ends : new int[][] {{0, 0}, {1, 16}, {size - 1, size - 1}, {size / 2, Integer.MAX_VALUE},
            {Math.min(65_535, size - 1), Math.min(131_072, size - 1)}, {3, size - 2}}) {
            assertArrayEquals(Arrays.copyOfRange(log, ends[0], (int) Math.min(size, ends[1] + 1L)),
                all(manager.fetchLogSegment(segment, ends[0], ends[1])));
        }
        assertArrayEquals(Samples.filled(2_400, 1), all(manager.fetchIndex(segment, IndexType.OFFSET)));
        assertArrayEquals(Samples.filled(3_612, 2), all(manager.fetchIndex(segment, IndexType.TIMESTAMP)));
        assertArrayEquals(Samples.filled(10, 3), all(manager.fetchIndex(segment, IndexType.PRODUCER_SNAPSHOT)));
        assertEquals("0\n1\n4 1500\n\n", new String(
            all(manager.fetchIndex(segment, IndexType.LEADER_EPOCH)), StandardCharsets.US_ASCII));
        assertArrayEquals(Samples.filled(34, 5), all(manager.fetchIndex(segment, IndexType.TRANSACTION)));
        manager.deleteLogSegmentData(segment);
        assertEquals(List.of(), objects(where));
        manager.deleteLogSegmentData(segment);
        RemoteLogSegmentMetadata gone = segment;
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.fetchLogSegment(gone, 0));
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.fetchIndex(gone, IndexType.OFFSET));
    }

    @ParameterizedTest
    @CsvSource({"folder", "bucket"})
    void aTransactionIndexThatIsNotThereIsNotFound(String where) throws Exception {
        RlmmRemoteStorageManager manager = manager(in(where));
        RemoteLogSegmentMetadata segment = copied(manager, Samples.log(100));
        assertThrows(RemoteResourceNotFoundException.class, () -> manager.fetchIndex(segment, IndexType.TRANSACTION));
    }

    @Test
    void anEmptyIndexIsEmptyAndNotAbsent() throws Exception {
        RlmmRemoteStorageManager manager = manager(inFolder());
        LogSegmentData data = Samples.files(folder.resolve("files"), Samples.log(100), false);
        Files.write(data.offsetIndex(), new byte[0]);
        RemoteLogSegmentMetadata segment = Samples.segment(100);
        manager.copyLogSegmentData(segment, data);
        assertEquals(0, all(manager.fetchIndex(segment, IndexType.OFFSET)).length);
    }

    @Test
    void theLogOfAPlainSegmentIsTheBrokersFile() throws Exception {
        byte[] log = Samples.log(100_000);
        copied(manager(inFolder("chunk.size", 4_096)), log);
        assertArrayEquals(log, Files.readAllBytes(folder.resolve("tier").resolve(Samples.MAIN + ".log")));
    }

    @Test
    void logsThatProducersCompressedAreSparedWhereWanted() throws Exception {
        byte[] log = Samples.log(100_000);
        log[16] = 2;
        log[22] = 4;
        copied(manager(inFolder("compression.enabled", true, "compression.heuristic.enabled", true)), log);
        assertArrayEquals(log, Files.readAllBytes(folder.resolve("tier").resolve(Samples.MAIN + ".log")));
        log[22] = 0;
        copied(manager(inFolder("compression.enabled", true, "compression.heuristic.enabled", true)), log);
        assertTrue(Files.size(folder.resolve("tier").resolve(Samples.MAIN + ".log")) < 90_000);
    }

    @Test
    void customMetadataIsWhatWasAskedFor() throws Exception {
        byte[] log = Samples.log(100);
        RemoteLogSegmentMetadata segment = copied(manager(inFolder()), log);
        long stored = 0;
        for (String file : files()) {
            stored += Files.size(folder.resolve("tier").resolve(file));
        }
        String hex = HexFormat.of().formatHex(segment.customMetadata().map(CustomMetadata::value).orElseThrow());
        assertEquals(String.format("010002%02x%02x", stored * 2 & 127 | 128, stored * 2 >> 7), hex);
        assertEquals(Optional.empty(),
            copied(manager(inFolder("custom.metadata.fields.include", "NONE")), log).customMetadata());
    }

    @Test
    void aSegmentIsFoundWhereItsMetadataSaysWhenThePrefixHasChanged() throws Exception {
        byte[] log = Samples.log(100);
        String fields = "REMOTE_SIZE,OBJECT_PREFIX,OBJECT_KEY";
        RemoteLogSegmentMetadata segment = copied(manager(
            inFolder("key.prefix", "old/", "custom.metadata.fields.include", fields)), log);
        RlmmRemoteStorageManager manager = manager(inFolder("key.prefix", "new/"));
        assertArrayEquals(log, all(manager.fetchLogSegment(segment, 0)));
        manager.deleteLogSegmentData(segment);
        assertEquals(List.of(), files());
    }

    @Test
    void objectsAreNamedAlikeInAllLanguages() throws Exception {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("ar-EG-u-nu-arab"));
        try {
            copied(manager(inFolder()), Samples.log(100));
        } finally {
            Locale.setDefault(before);
        }
        assertEquals(List.of(Samples.MAIN + ".indexes", Samples.MAIN + ".log", Samples.MAIN + ".rsm-manifest"),
            files());
    }

    @Test
    void metadataThatABrokerWouldNotTakeIsLeftOut() throws Exception {
        String fields = "REMOTE_SIZE,OBJECT_PREFIX,OBJECT_KEY";
        RemoteLogSegmentMetadata segment = copied(manager(inFolder(
            "key.prefix", "p".repeat(90) + "/", "custom.metadata.fields.include", fields)), Samples.log(100));
        assertEquals(5, segment.customMetadata().orElseThrow().value().length);
    }

    @Test
    void sizesThatContradictTheMetadataAreRefused() throws Exception {
        RlmmRemoteStorageManager manager = manager(inFolder());
        LogSegmentData data = Samples.files(folder.resolve("files"), Samples.log(100), false);
        assertThrows(RemoteStorageException.class, () -> manager.copyLogSegmentData(Samples.segment(101), data));
        assertEquals(List.of(), files());
    }

    @Test
    void nonsenseIsRefusedBeforeAnythingIsAsked() {
        RlmmRemoteStorageManager manager = manager(inBucket());
        assertThrows(IllegalArgumentException.class, () -> manager.fetchLogSegment(Samples.segment(9), -1));
        assertThrows(IllegalArgumentException.class, () -> manager.fetchLogSegment(Samples.segment(9), 5, 4));
        assertThrows(NullPointerException.class, () -> manager.fetchLogSegment(null, 0));
        assertThrows(NullPointerException.class, () -> manager.fetchIndex(Samples.segment(9), null));
        assertThrows(NullPointerException.class, () -> manager.deleteLogSegmentData(null));
        assertThrows(NullPointerException.class, () -> manager.copyLogSegmentData(Samples.segment(9), null));
        assertEquals(List.of(), s3.requests);
        assertThrows(IllegalStateException.class,
            () -> new RlmmRemoteStorageManager().fetchLogSegment(Samples.segment(9), 0));
    }
}
