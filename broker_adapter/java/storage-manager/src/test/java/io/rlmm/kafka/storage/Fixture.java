package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A bucket, a folder, and managers for them. */
abstract class Fixture {
    static final long DEADLINE_MS = 20_000;
    static final int MIB = 1024 * 1024;

    @TempDir
    Path folder;
    FakeS3 s3;
    private final List<RlmmRemoteStorageManager> managers = new ArrayList<>();

    @BeforeEach
    void begin() throws IOException {
        s3 = new FakeS3();
        Files.createDirectories(folder.resolve("tier"));
    }

    @AfterEach
    void end() {
        s3.release();
        managers.forEach(RlmmRemoteStorageManager::close);
        s3.close();
    }

    Map<String, Object> inFolder(Object... pairs) {
        return configs(Map.of("storage.root", folder.resolve("tier").toString()), pairs);
    }

    Map<String, Object> inBucket(Object... pairs) {
        return configs(Map.of(
            "storage.s3.bucket.name", "bucket", "storage.s3.endpoint.url", s3.endpoint(),
            "storage.s3.path.style.access.enabled", "true", "storage.aws.access.key.id", "id",
            "storage.aws.secret.access.key", "secret", "storage.s3.multipart.upload.part.size", 5 * MIB,
            "fetch.timeout.ms", DEADLINE_MS), pairs);
    }

    private static Map<String, Object> configs(Map<String, Object> some, Object... pairs) {
        Map<String, Object> configs = new HashMap<>(some);
        configs.put("broker.id", 1);
        configs.put("fetch.failure.wait.ms", 0);
        for (int at = 0; at < pairs.length; at += 2) {
            configs.put((String) pairs[at], pairs[at + 1]);
        }
        return configs;
    }

    RlmmRemoteStorageManager manager(Map<String, ?> configs) {
        RlmmRemoteStorageManager manager = new RlmmRemoteStorageManager();
        manager.configure(configs);
        managers.add(manager);
        return manager;
    }

    RlmmRemoteStorageManager toBeClosed(RlmmRemoteStorageManager manager) {
        managers.add(manager);
        return manager;
    }

    RemoteLogSegmentMetadata copied(RlmmRemoteStorageManager manager, byte[] log) throws Exception {
        RemoteLogSegmentMetadata segment = Samples.segment(log.length);
        return Samples.with(
            segment, manager.copyLogSegmentData(segment, Samples.files(folder.resolve("files"), log, false)));
    }

    static byte[] all(InputStream from) throws IOException {
        try (from) {
            return from.readAllBytes();
        }
    }

    List<String> files() throws IOException {
        Path tier = folder.resolve("tier");
        try (Stream<Path> found = Files.walk(tier)) {
            return found.filter(Files::isRegularFile).map(one -> tier.relativize(one).toString()).sorted().toList();
        }
    }

    static List<String> threads() {
        return Thread.getAllStackTraces().keySet().stream().filter(Thread::isAlive).map(Thread::getName)
            .filter(name -> name.startsWith("rlmm-storage") || name.startsWith("sdk-") || name.startsWith("idle-conn"))
            .sorted().toList();
    }

    static void until(BooleanSupplier isSo) throws InterruptedException {
        long end = System.nanoTime() + DEADLINE_MS * 1_000_000;
        while (!isSo.getAsBoolean()) {
            assertTrue(System.nanoTime() < end, () -> "not within " + DEADLINE_MS + " ms, threads: " + threads());
            Thread.sleep(2);
        }
    }
}
