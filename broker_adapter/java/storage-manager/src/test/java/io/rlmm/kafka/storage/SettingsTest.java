package io.rlmm.kafka.storage;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.types.Password;
import org.junit.jupiter.api.Test;

/** What a broker hands over: texts or numbers, keys of ours and of others. */
class SettingsTest {

    private static Map<String, Object> configs(Object... pairs) {
        Map<String, Object> configs = new HashMap<>(Map.of(
            "broker.id", 1, "storage.s3.bucket.name", "tier", "remote.log.metadata.topic.min.isr", 2));
        for (int at = 0; at < pairs.length; at += 2) {
            configs.put((String) pairs[at], pairs[at + 1]);
        }
        return configs;
    }

    private static void assertRefused(String named, Object... pairs) {
        String message = assertThrows(ConfigException.class, () -> Settings.read(configs(pairs))).getMessage();
        assertTrue(message.contains(named), message);
    }

    @Test
    void whatIsNotSaidHasAValue() {
        Settings settings = Settings.read(configs());
        assertNull(settings.root());
        assertNull(settings.s3().endpoint());
        assertNull(settings.s3().region());
        assertNull(settings.s3().accessKey());
        assertEquals("", settings.prefix());
        assertEquals(4 * 1024 * 1024, settings.style().chunkBytes());
        assertTrue(settings.limits().waitMs() < 500);
        assertTrue(settings.limits().failureMs() < settings.limits().waitMs());
    }

    @Test
    void valuesAreTextsOrNumbers() {
        assertEquals(65_536, Settings.read(configs("chunk.size", "65536")).style().chunkBytes());
        assertEquals(65_536, Settings.read(configs("chunk.size", 65_536)).style().chunkBytes());
        assertEquals("us-east-1", Settings.read(configs("storage.s3.endpoint.url", "http://store:9000")).s3().region());
    }

    @Test
    void secretsAreNotShown() {
        Settings settings = Settings.read(configs(
            "storage.aws.access.key.id", "id", "storage.aws.secret.access.key", new Password("hidden")));
        assertEquals("hidden", settings.s3().secretKey());
        assertFalse(settings.toString().contains("hidden"));
    }

    @Test
    void whatCannotBeMeantIsRefusedByItsKey() {
        assertRefused("storage.root", "storage.s3.bucket.name", "");
        assertRefused("storage.root", "storage.root", "/tmp");
        assertRefused("storage.root", "storage.s3.bucket.name", "", "storage.root", "/no/such/folder");
        assertRefused("storage.s3.endpoint.url", "storage.s3.endpoint.url", "store:9000");
        assertRefused("storage.s3.multipart.upload.part.size", "storage.s3.multipart.upload.part.size", 1_000);
        assertRefused("storage.aws.secret.access.key", "storage.aws.access.key.id", "id");
        assertRefused("chunk.size", "chunk.size", "0");
        assertRefused("chunk.size", "chunk.size", "4 MiB");
        assertRefused("compression.enabled", "compression.enabled", "perhaps");
        assertRefused("custom.metadata.fields.include", "custom.metadata.fields.include", "SIZE");
        assertRefused("encryption.key.ring.file", "encryption.key.ring.file", "/no/such/file");
        assertRefused("fetch.timeout.ms", "fetch.timeout.ms", 0);
        assertRefused("fetch.failure.wait.ms", "fetch.failure.wait.ms", -1);
    }

    @Test
    void aBucketWithoutARegionIsRefusedByThatKey() {
        // What the SDK would look at on this machine: nothing that a developer has set up.
        Map<String, String> kept = new HashMap<>();
        for (String name : List.of("aws.region", "aws.configFile", "aws.disableEc2Metadata")) {
            kept.put(name, System.getProperty(name));
        }
        try (RlmmRemoteStorageManager manager = new RlmmRemoteStorageManager()) {
            System.clearProperty("aws.region");
            System.setProperty("aws.configFile", "/no/such/file");
            System.setProperty("aws.disableEc2Metadata", "true");
            assumeTrue(System.getenv("AWS_REGION") == null, "the environment names a region");
            String message = assertThrows(ConfigException.class, () -> manager.configure(configs())).getMessage();
            assertTrue(message.startsWith("storage.s3.region is missing"), message);
        } finally {
            kept.forEach((name, value) -> {
                if (value == null) {
                    System.clearProperty(name);
                } else {
                    System.setProperty(name, value);
                }
            });
        }
    }
}
