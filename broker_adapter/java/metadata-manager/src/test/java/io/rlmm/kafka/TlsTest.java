package io.rlmm.kafka;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLServerSocket;
import javax.net.ssl.TrustManagerFactory;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.ReplicaNotAvailableException;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A service behind TLS that asks for a certificate and a token: keys are made by the JDK's own tool. */
class TlsTest extends Fixture {
    private static final char[] PASSWORD = "of-a-test".toCharArray();
    private static final Map<String, String> ALGORITHMS = Map.of("server", "EC", "client", "RSA", "stranger", "EC");
    @TempDir
    static Path keys;
    private int port;

    @BeforeAll
    static void makeKeys() throws Exception {
        for (Map.Entry<String, String> one : ALGORITHMS.entrySet()) {
            String name = one.getKey();
            Path store = keys.resolve(name + ".p12");
            Process made = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair", "-alias", name, "-keyalg", one.getValue(), "-dname", "CN=" + name,
                "-ext", "san=dns:localhost,ip:127.0.0.1", "-storetype", "PKCS12", "-keystore", store.toString(),
                "-storepass", new String(PASSWORD)).redirectErrorStream(true).start();
            assertEquals(0, made.waitFor(), new String(made.getInputStream().readAllBytes()));
            KeyStore read = store(name);
            write(name + ".crt", "CERTIFICATE", read.getCertificate(name).getEncoded());
            write(name + ".key", "PRIVATE KEY", read.getKey(name, PASSWORD).getEncoded());
        }
        Files.writeString(keys.resolve("token"), "s3cret\n");
    }

    private static KeyStore store(String name) throws Exception {
        return KeyStore.getInstance(keys.resolve(name + ".p12").toFile(), PASSWORD);
    }

    private static void write(String name, String kind, byte[] bytes) throws IOException {
        String base64 = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(bytes);
        Files.writeString(
            keys.resolve(name), "-----BEGIN " + kind + "-----\n" + base64 + "\n-----END " + kind + "-----\n");
    }

    private FakeService secured() throws Exception {
        KeyManagerFactory own = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        own.init(store("server"), PASSWORD);
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("client", store("client").getCertificate("client"));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(own.getKeyManagers(), trust.getTrustManagers(), null);
        SSLServerSocket socket = (SSLServerSocket) context.getServerSocketFactory()
            .createServerSocket(0, 10, InetAddress.getByName("127.0.0.1"));
        socket.setNeedClientAuth(true);
        port = socket.getLocalPort();
        return FakeService.at(socket);
    }

    private Map<String, Object> configs(String trusted, String shown) {
        Map<String, Object> configs = configs();
        configs.put("sidecar.address", "127.0.0.1:" + port);
        configs.put("sidecar.tls.ca.file", keys.resolve(trusted + ".crt").toString());
        configs.put("sidecar.tls.certificate.file", keys.resolve(shown + ".crt").toString());
        configs.put("sidecar.tls.key.file", keys.resolve(shown + ".key").toString());
        configs.put("sidecar.token.file", keys.resolve("token").toString());
        return configs;
    }

    @Test
    void whoTrustsAndIsTrustedIsAnswered() throws Exception {
        try (FakeService behind = secured()) {
            RlmmRemoteLogMetadataManager manager = manager(configs("server", "client"));
            manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
            until(() -> manager.isReady(ORDERS));
            copied(manager, 0);
            assertHolds(manager, 0);
            assertEquals("s3cret", ((Map<?, ?>) behind.of("hello").get(0).args().get(0)).get("token"));
            manager.close();
            assertEquals(List.of(), PointsTest.ours());
        }
    }

    @Test
    void whoIsNotTrustedIsNotAskedAndNothingIsToldToHim() throws Exception {
        try (FakeService behind = secured()) {
            for (Map<String, Object> configs : List.of(configs("stranger", "client"), configs("server", "stranger"))) {
                RlmmRemoteLogMetadataManager manager = manager(configs);
                manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
                assertThrows(ReplicaNotAvailableException.class, () -> manager.highestOffsetForEpoch(ORDERS, 0));
                manager.close();
            }
            assertEquals(List.of(), behind.methods());
        }
    }

    @Test
    void theNameInTheCertificateIsHeldAgainstTheHost() throws Exception {
        try (FakeService behind = secured()) {
            Map<String, Object> configs = configs("server", "client");
            configs.put("sidecar.tls.server.name", "elsewhere.example");
            RlmmRemoteLogMetadataManager manager = manager(configs);
            manager.onPartitionLeadershipChanges(Set.of(ORDERS), Set.of());
            assertThrows(ReplicaNotAvailableException.class, () -> manager.highestOffsetForEpoch(ORDERS, 0));
            assertEquals(List.of(), behind.methods());
        }
    }

    @Test
    void aKeyOfAnotherFormIsRefusedWithWhatToDo() throws Exception {
        Path old = keys.resolve("old.key");
        Files.writeString(old, Files.readString(keys.resolve("client.key")).replace("PRIVATE", "EC PRIVATE"));
        port = 1;
        Map<String, Object> configs = configs("server", "client");
        configs.put("sidecar.tls.key.file", old.toString());
        String said = assertThrows(ConfigException.class, () -> manager(configs)).getMessage();
        assertTrue(said.contains("PKCS#8"), said);
    }
}
