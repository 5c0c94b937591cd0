import io.rlmm.kafka.storage.RlmmRemoteStorageManager;
import java.io.FileInputStream;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentId;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemoteResourceNotFoundException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;

/**
 * Our storage manager without a broker: copies a folder's files, or reads a segment into one.
 *
 * <p>Arguments: copy or read, a file of properties (the manager's, and those of the segment behind
 * "segment."), the folder. A copy prints the custom metadata in hexadecimal digits.
 */
public final class StorageProbe {

    public static void main(String[] arguments) throws Exception {
        Properties given = new Properties();
        try (InputStream from = new FileInputStream(arguments[1])) {
            given.load(from);
        }
        Map<String, Object> configs = new HashMap<>();
        given.forEach((key, value) -> configs.put((String) key, value));
        Path folder = Path.of(arguments[2]);
        try (RlmmRemoteStorageManager manager = new RlmmRemoteStorageManager()) {
            manager.configure(configs);
            if (arguments[0].equals("copy")) {
                Optional<CustomMetadata> custom = manager.copyLogSegmentData(segment(given), files(folder));
                System.out.println(HexFormat.of().formatHex(custom.map(CustomMetadata::value).orElse(new byte[0])));
            } else {
                read(manager, segment(given), folder);
            }
        }
    }

    private static RemoteLogSegmentMetadata segment(Properties of) {
        TopicIdPartition partition = new TopicIdPartition(
            Uuid.fromString(of.getProperty("segment.topic.id")),
            new TopicPartition(of.getProperty("segment.topic"), number(of, "partition")));
        return new RemoteLogSegmentMetadata(
            new RemoteLogSegmentId(partition, Uuid.fromString(of.getProperty("segment.id"))),
            number(of, "start"), number(of, "last"), Long.parseLong(of.getProperty("segment.max.timestamp")),
            number(of, "broker"), Long.parseLong(of.getProperty("segment.event.timestamp")), number(of, "size"),
            Optional.empty(), RemoteLogSegmentState.COPY_SEGMENT_STARTED,
            Map.of(number(of, "epoch"), (long) number(of, "start")));
    }

    private static int number(Properties of, String name) {
        return Integer.parseInt(of.getProperty("segment." + name));
    }

    private static LogSegmentData files(Path folder) throws Exception {
        Path transactions = folder.resolve("TRANSACTION");
        return new LogSegmentData(
            folder.resolve("LOG"), folder.resolve("OFFSET"), folder.resolve("TIMESTAMP"),
            Files.exists(transactions) ? Optional.of(transactions) : Optional.empty(),
            folder.resolve("PRODUCER_SNAPSHOT"), ByteBuffer.wrap(Files.readAllBytes(folder.resolve("LEADER_EPOCH"))));
    }

    private static void read(RlmmRemoteStorageManager manager, RemoteLogSegmentMetadata segment, Path folder)
            throws Exception {
        try (InputStream log = manager.fetchLogSegment(segment, 0)) {
            Files.copy(log, folder.resolve("LOG"));
        }
        for (IndexType type : IndexType.values()) {
            try (InputStream index = manager.fetchIndex(segment, type)) {
                Files.copy(index, folder.resolve(type.name()));
            } catch (RemoteResourceNotFoundException absent) {
                System.out.println("no " + type);
            }
        }
    }
}
