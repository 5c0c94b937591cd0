package io.rlmm.kafka.metadata;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.rlmm.kafka.link.Address;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a broker hands over: texts or numbers, keys of ours and of others. */
class SettingsTest {

    private static Map<String, Object> configs(Object... pairs) {
        Map<String, Object> configs = new HashMap<>(Map.of(
            "broker.id", "7", "cluster.id", "cccccccccccccccccccccc", "sidecar.address", "/run/rlmm.sock",
            "remote.log.metadata.topic.num.partitions", 5));
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
    void valuesAreTextsOrNumbers() {
        assertEquals(7, Settings.read(configs()).brokerId());
        assertEquals(7, Settings.read(configs("broker.id", 7)).brokerId());
        assertEquals(250, Settings.read(configs("sidecar.lookup.timeout.ms", (short) 250)).lookupMs());
        assertEquals(250, Settings.read(configs("sidecar.lookup.timeout.ms", "250")).lookupMs());
        assertEquals(300, Settings.read(configs()).lookupMs());
        assertNull(Settings.read(configs()).tls());
    }

    @Test
    void theNewerKeyOfABrokersNumberWins() {
        assertEquals(9, Settings.read(configs("node.id", "9")).brokerId());
    }

    @Test
    void addressesAreSocketsOrHostAndPort() {
        assertEquals(new Address.Tcp("host", 9_000), Settings.read(configs("sidecar.address", "host:9000")).address());
        assertEquals(new Address.Tcp("::1", 9_000), Address.parse("[::1]:9000"));
        assertEquals("run/s", Address.parse("unix:run/s").toString());
    }

    @Test
    void whatCannotBeMeantIsRefusedByItsKey() {
        assertRefused("sidecar.address", "sidecar.address", "");
        assertRefused("sidecar.address", "sidecar.address", "host");
        assertRefused("sidecar.address", "sidecar.address", "host:99999");
        assertRefused("sidecar.address", "sidecar.address", "http://host:9000");
        assertRefused("sidecar.address", "sidecar.address", "unix:");
        assertRefused("sidecar.address", "sidecar.address", "/" + "x".repeat(Address.SOCKET_BYTES_MAX));
        assertRefused("sidecar.lookup.timeout.ms", "sidecar.lookup.timeout.ms", "soon");
        assertRefused("from 1 to 2147483647", "sidecar.lookup.timeout.ms", "99999999999");
        assertRefused("sidecar.write.timeout.ms", "sidecar.write.timeout.ms", 0);
        assertRefused("sidecar.tls", "sidecar.tls", "perhaps");
        assertRefused("sidecar.tls.ca.file", "sidecar.tls.ca.file", "/no/such/file");
        assertRefused("sidecar.tls.certificate.file", "sidecar.tls.certificate.file", "/no/such/file");
        assertRefused("sidecar.token.file", "sidecar.token.file", "/no/such/file");
        assertRefused("node.id", "broker.id", "");
    }

    @Test
    void whatWouldLeaveAConnectionUnencryptedOrUnprovenIsRefused() {
        assertRefused("sidecar.tls.key.file", "sidecar.tls.key.file", "/some/key.pem");
        assertRefused("sidecar.tls.key.file", "sidecar.tls", "true", "sidecar.tls.key.file", "/some/key.pem");
        assertRefused("sidecar.tls.server.name", "sidecar.tls.server.name", "rlmm.example.org");
        assertNull(Settings.read(configs("sidecar.tls", "false", "sidecar.tls.server.name", "rlmm")).tls());
    }

    @Test
    void aTokenGoesUnencryptedToThisMachineAlone(@TempDir Path folder) throws IOException {
        String token = Files.writeString(folder.resolve("token"), "a-token-0123456789").toString();
        for (String address : new String[] {"192.0.2.7:9000", "[2001:db8::7]:9000", "no-such-host.invalid:9000"}) {
            assertRefused("sidecar.plaintext.token", "sidecar.address", address, "sidecar.token.file", token);
            assertTrue(Settings.read(configs("sidecar.address", address, "sidecar.token.file", token,
                "sidecar.plaintext.token", "true")).sendsPlaintextToken());
            Settings.read(configs("sidecar.address", address, "sidecar.token.file", token, "sidecar.tls", "true"));
            Settings.read(configs("sidecar.address", address));
        }
        for (String address : new String[] {"127.0.0.1:9000", "[::1]:9000", "localhost:9000", "/run/rlmm.sock"}) {
            Settings.read(configs("sidecar.address", address, "sidecar.token.file", token));
        }
        assertRefused("sidecar.plaintext.token", "sidecar.plaintext.token", "perhaps");
    }

    @Test
    void aFileWithoutATokenIsRefused(@TempDir Path folder) throws IOException {
        Path file = Files.writeString(folder.resolve("token"), " \n");
        assertRefused("sidecar.token.file", "sidecar.token.file", file.toString());
        assertRefused("sidecar.token.file", "sidecar.token.file", folder.toString());
    }
}
