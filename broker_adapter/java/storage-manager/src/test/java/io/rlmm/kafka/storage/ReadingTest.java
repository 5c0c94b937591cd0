package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.storage.FakeS3.Reaction;
import io.rlmm.kafka.storage.objects.S3Store;
import java.io.IOException;
import java.io.InputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** How many requests reading takes, and how long anybody waits for them. */
class ReadingTest extends Fixture {
    private static final int LOG_BYTES = 20 * MIB;
    private static final int FETCH_BYTES = 256 * 1024;

    private static byte[] some(RlmmRemoteStorageManager manager, RemoteLogSegmentMetadata segment, int start)
            throws Exception {
        try (InputStream from = manager.fetchLogSegment(segment, start)) {
            return from.readNBytes(FETCH_BYTES);
        }
    }

    @ParameterizedTest
    @CsvSource({"false,4194304,5", "true,4194304,5", "false,65536,5", "true,65536,5", "true,8388608,3"})
    void aReaderInOrderIsNotARequestForEachFetch(boolean isCompressed, int chunkBytes, int expected) throws Exception {
        byte[] log = Samples.log(LOG_BYTES);
        RemoteLogSegmentMetadata segment = copied(
            manager(inBucket("compression.enabled", isCompressed, "chunk.size", chunkBytes)), log);
        RlmmRemoteStorageManager manager = manager(inBucket());
        for (int start = 0; start < LOG_BYTES; start += FETCH_BYTES) {
            assertArrayEquals(Arrays.copyOfRange(log, start, start + FETCH_BYTES), some(manager, segment, start));
        }
        assertEquals(1, s3.count("GET " + Samples.MAIN + ".rsm-manifest"));
        assertEquals(expected, s3.count("GET " + Samples.MAIN + ".log"));
    }

    @Test
    void whatIsNextIsFetchedBeforeItIsAskedFor() throws Exception {
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), Samples.log(LOG_BYTES));
        RlmmRemoteStorageManager manager = manager(inBucket("fetch.read.ahead.size", 8 * MIB));
        some(manager, segment, 0);
        until(() -> s3.count("GET " + Samples.MAIN + ".log") == 3);
        some(manager, segment, 4 * MIB);
        until(() -> s3.count("GET " + Samples.MAIN + ".log") == 4);
        assertEquals(4, s3.count("GET " + Samples.MAIN + ".log"));
    }

    @Test
    void aReaderHereAndThereFetchesNothingAhead() throws Exception {
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), Samples.log(LOG_BYTES));
        RlmmRemoteStorageManager manager = manager(inBucket());
        some(manager, segment, 12 * MIB);
        some(manager, segment, 4 * MIB);
        manager.close();
        assertEquals(2, s3.count("GET " + Samples.MAIN + ".log"));
    }

    @Test
    void moreReadersThanTheCacheHasRoomForFetchLittleAhead() throws Exception {
        int readers = 3;
        byte[] log = Samples.log(12 * MIB);
        RlmmRemoteStorageManager manager = manager(inBucket(
            "fetch.chunk.cache.size", 8 * MIB, "fetch.read.ahead.size", 8 * MIB));
        LogSegmentData data = Samples.files(folder.resolve("files"), log, false);
        List<RemoteLogSegmentMetadata> segments = new ArrayList<>();
        for (int reader = 0; reader < readers; reader++) {
            segments.add(Samples.another(log.length));
            manager.copyLogSegmentData(segments.get(reader), data);
        }
        for (int start = 0; start < log.length; start += MIB) {
            for (RemoteLogSegmentMetadata segment : segments) {
                assertArrayEquals(Arrays.copyOfRange(log, start, start + FETCH_BYTES), some(manager, segment, start));
            }
        }
        long asked = s3.requests.stream().filter(one -> one.startsWith("GET") && one.endsWith(".log")).count();
        // One for each read, as its block was pushed out meanwhile; and once a block ahead, which was too.
        assertTrue(asked <= readers * (12 + 1), () -> asked + " requests");
    }

    @Test
    void anAnswerThatIsTooLargeIsNotTakenToItsEnd() throws Exception {
        s3.objects.put("large", new byte[32 * MIB]);
        try (S3Store store = new S3Store(Settings.read(inBucket()).s3())) {
            assertThrows(IOException.class, () -> store.readWhole("large", 1_000));
            until(() -> s3.cut.equals(List.of("GET large")));
        }
    }

    @Test
    void nothingIsFetchedBeforeItIsRead() throws Exception {
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), Samples.log(LOG_BYTES));
        manager(inBucket()).fetchLogSegment(segment, 0).close();
        assertEquals(0, s3.count("GET " + Samples.MAIN + ".log"));
    }

    @Test
    void theIndexesOfASegmentAreOneRequest() throws Exception {
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), Samples.log(1_000));
        RlmmRemoteStorageManager manager = manager(inBucket());
        for (IndexType type : List.of(IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.LEADER_EPOCH)) {
            manager.fetchIndex(segment, type).close();
        }
        assertEquals(2, s3.count("GET"));
    }

    @Test
    void noMoreIsKeptThanTheCacheMayHold() throws Exception {
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), Samples.log(LOG_BYTES));
        RlmmRemoteStorageManager manager = manager(inBucket(
            "fetch.chunk.cache.size", 8 * MIB, "fetch.read.ahead.size", 0));
        for (int start : new int[] {0, 4 * MIB, 0, 8 * MIB, 0, 4 * MIB}) {
            some(manager, segment, start);
        }
        // The third takes the place of the second, which was used least of late.
        assertEquals(4, s3.count("GET " + Samples.MAIN + ".log"));
    }

    @Test
    void whoAsksAtTheSameTimeSharesOneRequest() throws Exception {
        byte[] log = Samples.log(1_000_000);
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), log);
        RlmmRemoteStorageManager manager = manager(inBucket());
        ExecutorService readers = Executors.newFixedThreadPool(8);
        try {
            List<Callable<byte[]>> reads = new ArrayList<>();
            for (int reader = 0; reader < 8; reader++) {
                reads.add(() -> all(manager.fetchLogSegment(segment, 0)));
            }
            for (Future<byte[]> read : readers.invokeAll(reads)) {
                assertArrayEquals(log, read.get());
            }
        } finally {
            readers.shutdownNow();
        }
        assertEquals(2, s3.count("GET"));
    }

    @Test
    void aStoreThatIsSlowerThanTheBrokersFetchIsReadAllTheSame() throws Exception {
        byte[] log = Samples.log(100_000);
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), log);
        RlmmRemoteStorageManager manager = manager(inBucket("fetch.timeout.ms", 50));
        CountDownLatch gate = new CountDownLatch(1);
        s3.script = one -> {
            try {
                gate.await();
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
            return Reaction.SERVE;
        };
        long before = System.nanoTime();
        RemoteStorageException told = assertThrows(RemoteStorageException.class,
            () -> manager.fetchLogSegment(segment, 0));
        assertTrue(System.nanoTime() - before < 1_500_000_000L);
        assertTrue(told.getMessage().contains("not there within 50 ms"), told.getMessage());
        gate.countDown();
        byte[][] found = new byte[1][];
        until(() -> {
            try {
                found[0] = all(manager.fetchLogSegment(segment, 0));
                return true;
            } catch (RemoteStorageException | IOException late) {
                return false;
            }
        });
        assertArrayEquals(log, found[0]);
        assertEquals(2, s3.count("GET"));
    }

    @Test
    void aReadThatHangsIsCancelledAndAnotherMayGoWell() throws Exception {
        byte[] log = Samples.log(1_000);
        RemoteLogSegmentMetadata segment = copied(manager(inBucket()), log);
        RlmmRemoteStorageManager manager = manager(inBucket("request.read.timeout.ms", 200));
        s3.script = one -> Reaction.HANG;
        RemoteStorageException told = assertThrows(RemoteStorageException.class,
            () -> manager.fetchLogSegment(segment, 0));
        assertTrue(told.getMessage().contains("deadline"), told.getMessage());
        s3.script = one -> Reaction.SERVE;
        assertArrayEquals(log, all(manager.fetchLogSegment(segment, 0)));
    }

    @Test
    void aStreamGivesWhatAStreamPromises() throws Exception {
        byte[] log = Samples.log(100);
        RlmmRemoteStorageManager manager = manager(inFolder("fetch.timeout.ms", 20_000));
        RemoteLogSegmentMetadata segment = copied(manager, log);
        try (InputStream from = manager.fetchLogSegment(segment, 10, 19)) {
            assertEquals(0, from.available());
            assertEquals(log[10] & 0xff, from.read());
            assertEquals(9, from.available());
            assertEquals(4, from.skip(4));
            assertEquals(log[15] & 0xff, from.read());
            assertEquals(0, from.read(new byte[0]));
            assertEquals(4, from.readAllBytes().length);
            assertEquals(-1, from.read());
            assertEquals(0, from.skip(9));
        }
        assertThrows(RemoteStorageException.class, () -> manager.fetchLogSegment(segment, 100));
    }
}
