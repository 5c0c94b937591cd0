package io.rlmm.kafka.storage.layout;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.storage.RlmmRemoteStorageManager;
import io.rlmm.kafka.storage.Samples;
import io.rlmm.kafka.storage.SegmentEncryptedException;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager.IndexType;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Segments that were encrypted: with a data key that OpenSSL sealed. */
class SealedTest {
    private static final Path DATA = Path.of(System.getProperty("shared.test.data"), "key-ring");
    private static final byte[] AAD = Samples.filled(32, 9);
    private static final int CHUNK_BYTES = 50_000;

    @TempDir
    Path folder;

    private static byte[] dataKey() {
        byte[] key = new byte[32];
        for (int at = 0; at < key.length; at++) {
            key[at] = (byte) (100 + at);
        }
        return key;
    }

    private static byte[] sealed(byte[] content, int number) throws Exception {
        byte[] vector = new byte[12];
        new Random(number).nextBytes(vector);
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(dataKey(), "AES"), new GCMParameterSpec(128, vector));
        cipher.updateAAD(AAD);
        ByteArrayOutputStream made = new ByteArrayOutputStream();
        made.write(vector);
        made.write(cipher.doFinal(content));
        return made.toByteArray();
    }

    /** As the plugin that the layout is from writes it. */
    private RemoteLogSegmentMetadata written(byte[] log, boolean isCompressed) throws Exception {
        List<Integer> sizes = new ArrayList<>();
        ByteArrayOutputStream object = new ByteArrayOutputStream();
        for (int at = 0; at < log.length; at += CHUNK_BYTES) {
            byte[] chunk = Arrays.copyOfRange(log, at, Math.min(log.length, at + CHUNK_BYTES));
            byte[] part = sealed(isCompressed ? Frames.frame(chunk, chunk.length, false) : chunk, at);
            sizes.add(part.length);
            object.write(part);
        }
        Map<IndexType, Long> places = new EnumMap<>(IndexType.class);
        ByteArrayOutputStream indexes = new ByteArrayOutputStream();
        for (IndexType type : List.of(
                IndexType.OFFSET, IndexType.TIMESTAMP, IndexType.PRODUCER_SNAPSHOT, IndexType.LEADER_EPOCH)) {
            byte[] part = sealed(Samples.filled(100, type.ordinal()), -1 - type.ordinal());
            places.put(type, (long) part.length);
            indexes.write(part);
        }
        ChunkIndex chunks = isCompressed ? ChunkIndex.frames(CHUNK_BYTES, log.length, sizes)
            : ChunkIndex.fixed(CHUNK_BYTES, log.length, CHUNK_BYTES + 28, sizes.get(sizes.size() - 1));
        RemoteLogSegmentMetadata segment = Samples.segment(log.length);
        String sealedKey = Files.readString(DATA.resolve("sealed-data-key.txt")).strip();
        String manifest = new String(
            new Manifest(chunks, IndexPlaces.of(places), isCompressed, null).bytes(segment), StandardCharsets.UTF_8)
            .replace(",\"remoteLog", ",\"encryption\":{\"dataKey\":\"key-1:" + sealedKey + "\",\"aad\":\""
                + java.util.Base64.getEncoder().encodeToString(AAD) + "\"},\"remoteLog");
        Path at = folder.resolve("tier").resolve(Samples.MAIN + ".log");
        Files.createDirectories(at.getParent());
        Files.write(at, object.toByteArray());
        Files.write(folder.resolve("tier").resolve(Samples.MAIN + ".indexes"), indexes.toByteArray());
        Files.writeString(folder.resolve("tier").resolve(Samples.MAIN + ".rsm-manifest"), manifest);
        return segment;
    }

    private Path ring(String id) throws IOException {
        own(Files.copy(DATA.resolve("key.pem"), folder.resolve("key.pem")));
        return own(Files.writeString(folder.resolve("ring.json"),
            "{\"format\": \"rlmm-key-ring\", \"version\": 1, \"keys\": {\"" + id + "\": \"key.pem\"}}"));
    }

    private static Path own(Path file) throws IOException {
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    }

    private RlmmRemoteStorageManager manager(Path ring) {
        RlmmRemoteStorageManager manager = new RlmmRemoteStorageManager();
        manager.configure(Map.of("storage.root", folder.resolve("tier").toString(),
            "fetch.timeout.ms", 20_000, "encryption.key.ring.file", ring == null ? "" : ring.toString()));
        return manager;
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aSegmentIsReadWithTheKeyThatItNames(boolean isCompressed) throws Exception {
        byte[] log = Samples.log(170_123);
        RemoteLogSegmentMetadata segment = written(log, isCompressed);
        try (RlmmRemoteStorageManager manager = manager(ring("key-1"))) {
            assertArrayEquals(log, manager.fetchLogSegment(segment, 0).readAllBytes());
            assertArrayEquals(Arrays.copyOfRange(log, 49_990, 100_011),
                manager.fetchLogSegment(segment, 49_990, 100_010).readAllBytes());
            assertArrayEquals(Samples.filled(100, IndexType.LEADER_EPOCH.ordinal()),
                manager.fetchIndex(segment, IndexType.LEADER_EPOCH).readAllBytes());
        }
    }

    @Test
    void withoutTheKeyTheErrorNamesIt() throws Exception {
        RemoteLogSegmentMetadata segment = written(Samples.log(1_000), false);
        for (Path ring : new Path[] {null, ring("key-2")}) {
            try (RlmmRemoteStorageManager manager = manager(ring)) {
                String message = assertThrows(SegmentEncryptedException.class,
                    () -> manager.fetchLogSegment(segment, 0)).getMessage();
                assertTrue(message.contains("'key-1'"), message);
                assertTrue(message.contains("rsm.config.encryption.key.ring.file"), message);
                assertThrows(SegmentEncryptedException.class, () -> manager.fetchIndex(segment, IndexType.OFFSET));
            }
        }
    }

    @Test
    void aFlippedBitIsToldAndNotRead() throws Exception {
        RemoteLogSegmentMetadata segment = written(Samples.log(170_123), false);
        Path log = folder.resolve("tier").resolve(Samples.MAIN + ".log");
        byte[] bytes = Files.readAllBytes(log);
        bytes[60_000] ^= 1;
        Files.write(log, bytes);
        try (RlmmRemoteStorageManager manager = manager(ring("key-1"))) {
            IOException told = assertThrows(IOException.class,
                () -> manager.fetchLogSegment(segment, 0).readAllBytes());
            assertTrue(told.getMessage().contains("chunk 1,"), told.getMessage());
        }
    }

    @Test
    void aKeyThatEverybodyMayReadIsRefused() throws Exception {
        Path ring = ring("key-1");
        KeyRing.read(ring);
        Path key = folder.resolve("key.pem");
        Files.setPosixFilePermissions(key, PosixFilePermissions.fromString("rw-r--r--"));
        String message = assertThrows(LayoutException.class, () -> KeyRing.read(ring)).getMessage();
        assertTrue(message.contains("key.pem: every user"), message);
    }

    @Test
    void aRingThatIsNoneIsRefusedByItsKey() throws Exception {
        Path file = folder.resolve("ring.json");
        for (String text : new String[] {"{}", "[]", "{\"format\":\"rlmm-key-ring\",\"version\":2,\"keys\":{}}",
            "{\"format\":\"rlmm-key-ring\",\"version\":1,\"keys\":{\"a:b\":\"key.pem\"}}",
            "{\"format\":\"rlmm-key-ring\",\"version\":1,\"keys\":{\"a\":\"ring.json\"}}"}) {
            own(Files.writeString(file, text));
            assertThrows(LayoutException.class, () -> KeyRing.read(file), text);
        }
        assertEquals("KeyRing[]", KeyRing.none().toString());
    }
}
