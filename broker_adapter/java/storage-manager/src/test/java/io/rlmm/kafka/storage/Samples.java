package io.rlmm.kafka.storage;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;

/** Segments: the one of the recorded manifests, and some of any size. */
public final class Samples {
    /** Bytes 0 to 15. */
    public static final Uuid TOPIC_ID = Uuid.fromString("AAECAwQFBgcICQoLDA0ODw");
    /** Bytes 16 to 31. */
    public static final Uuid SEGMENT_ID = Uuid.fromString("EBESExQVFhcYGRobHB0eHw");
    /** What its objects are called. */
    public static final String MAIN = "orders-AAECAwQFBgcICQoLDA0ODw/3/00000000000000001500-EBESExQVFhcYGRobHB0eHw";

    private Samples() { }

    /** As the recorded manifests describe it, of any size. */
    public static RemoteLogSegmentMetadata segment(int size) {
        return segment(SEGMENT_ID, size);
    }

    /** One that is no other's. */
    public static RemoteLogSegmentMetadata another(int size) {
        return segment(Uuid.randomUuid(), size);
    }

    private static RemoteLogSegmentMetadata segment(Uuid id, int size) {
        TopicIdPartition partition = new TopicIdPartition(TOPIC_ID, new TopicPartition("orders", 3));
        return new RemoteLogSegmentMetadata(
            new RemoteLogSegmentId(partition, id), 1500, 2999, 1_700_000_000_000L, 1,
            1_700_000_300_000L, size, Optional.empty(), RemoteLogSegmentState.COPY_SEGMENT_STARTED, Map.of(4, 1500L));
    }

    /** The same with what a plugin gave to be kept. */
    public static RemoteLogSegmentMetadata with(RemoteLogSegmentMetadata one, Optional<CustomMetadata> custom) {
        return new RemoteLogSegmentMetadata(
            one.remoteLogSegmentId(), one.startOffset(), one.endOffset(), one.maxTimestampMs(), one.brokerId(),
            one.eventTimestampMs(), one.segmentSizeInBytes(), custom, one.state(), one.segmentLeaderEpochs());
    }

    /** Bytes that can be compressed, and of which no two places are alike. */
    public static byte[] log(int size) {
        byte[] log = new byte[size];
        Random random = new Random(size);
        byte[] word = new byte[24];
        for (int at = 0; at < size; at += 48) {
            random.nextBytes(word);
            System.arraycopy(word, 0, log, at, Math.min(word.length, size - at));
        }
        return log;
    }

    /** The files of a segment. */
    public static LogSegmentData files(Path folder, byte[] log, boolean hasTransactions) throws IOException {
        Files.createDirectories(folder);
        Path transactions = folder.resolve("00.txnindex");
        if (hasTransactions) {
            Files.write(transactions, filled(34, 5));
        }
        return new LogSegmentData(
            Files.write(folder.resolve("00.log"), log),
            Files.write(folder.resolve("00.index"), filled(2_400, 1)),
            Files.write(folder.resolve("00.timeindex"), filled(3_612, 2)),
            hasTransactions ? Optional.of(transactions) : Optional.empty(),
            Files.write(folder.resolve("01.snapshot"), filled(10, 3)),
            ByteBuffer.wrap("0\n1\n4 1500\n\n".getBytes(StandardCharsets.US_ASCII)));
    }

    /** So many of one byte. */
    public static byte[] filled(int size, int value) {
        byte[] bytes = new byte[size];
        Arrays.fill(bytes, (byte) value);
        return bytes;
    }
}
