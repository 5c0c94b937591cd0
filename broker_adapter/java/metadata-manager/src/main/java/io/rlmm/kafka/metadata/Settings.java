package io.rlmm.kafka.metadata;

import io.rlmm.kafka.link.Address;
import io.rlmm.kafka.link.TlsFiles;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;

/**
 * What a broker hands over, read: everything behind the prefix of its server.properties.
 *
 * <p>Values are texts or numbers, as they come; keys that are not ours are passed over, so that those
 * of Kafka's own manager may stay where they are.
 *
 * @param sendsPlaintextToken whether the token goes to another machine without TLS
 * @param lookupMs how long a consumer's question may take, and how long "not ready" is waited out
 * @param taskMs how long a question of a background task may take
 * @param listingMs how long a listing that must not fail is tried
 * @param writeMs how long an event may take that surely is not stored
 * @param outcomeMs how long it is asked what became of one that may be stored
 * @param finishMs how long the end of a copy is tried at the least, whatever becomes of it
 */
record Settings(
        Address address, TlsFiles tls, Path tokenFile, boolean sendsPlaintextToken, int brokerId, String clusterId, String bootstrap,
        int connectMs, int lookupMs, int taskMs, int listingMs, int writeMs, int outcomeMs, int finishMs) {
    static final String ADDRESS = "sidecar.address";
    static final String TLS = "sidecar.tls";
    static final String TLS_CA = "sidecar.tls.ca.file";
    static final String TLS_CERTIFICATE = "sidecar.tls.certificate.file";
    static final String TLS_KEY = "sidecar.tls.key.file";
    static final String TLS_NAME = "sidecar.tls.server.name";
    static final String TOKEN = "sidecar.token.file";
    static final String PLAINTEXT_TOKEN = "sidecar.plaintext.token";
    static final String CONNECT_MS = "sidecar.connect.timeout.ms";
    static final String LOOKUP_MS = "sidecar.lookup.timeout.ms";
    static final String TASK_MS = "sidecar.task.timeout.ms";
    static final String LISTING_MS = "sidecar.listing.timeout.ms";
    static final String WRITE_MS = "sidecar.write.timeout.ms";
    static final String OUTCOME_MS = "sidecar.outcome.timeout.ms";
    static final String FINISH_MS = "sidecar.finish.timeout.ms";
    private static final String BOOTSTRAP = "remote.log.metadata.common.client.bootstrap.servers";
    private static final int BOOTSTRAP_CHARS_MAX = 4_096;

    /**
     * Reads what was configured.
     *
     * @throws ConfigException where it cannot be meant; a broker that starts says so and ends
     */
    static Settings read(Map<String, ?> configs) {
        Settings settings = new Settings(
            address(configs),
            tls(configs),
            path(configs, TOKEN),
            flag(configs, PLAINTEXT_TOKEN, false),
            brokerId(configs),
            text(configs, "cluster.id"),
            bootstrap(configs),
            number(configs, CONNECT_MS, 5_000),
            number(configs, LOOKUP_MS, 300),
            number(configs, TASK_MS, 10_000),
            number(configs, LISTING_MS, 30_000),
            number(configs, WRITE_MS, 30_000),
            number(configs, OUTCOME_MS, 120_000),
            number(configs, FINISH_MS, 600_000));
        settings.requireFiles();
        return settings;
    }

    /** A file missing now would be missing at each connection, where no operator looks. */
    private void requireFiles() {
        if (tokenFile != null) {
            requireToken();
            requireUnread();
        }
        if (tls != null) {
            requireReadable(TLS_CA, tls.ca());
            requireReadable(TLS_CERTIFICATE, tls.certificate());
            requireReadable(TLS_KEY, tls.key());
            try {
                tls.sockets();
            } catch (IOException | GeneralSecurityException error) {
                throw new ConfigException("The files of " + TLS + " cannot be used: " + error.getMessage());
            }
        }
    }

    private void requireToken() {
        try {
            if (Files.readString(tokenFile).isBlank()) {
                throw new ConfigException(TOKEN, tokenFile, "there is no token in it");
            }
        } catch (IOException error) {
            throw new ConfigException(TOKEN, tokenFile, "cannot be read");
        }
    }

    /** A token that crosses a network unencrypted was read before the service could refuse it. */
    private void requireUnread() {
        if (tls == null && !sendsPlaintextToken && address instanceof Address.Tcp tcp && !tcp.isThisMachine()) {
            throw new ConfigException(TOKEN, tokenFile, "it is not sent to " + tcp + " without TLS: set "
                + TLS_CA + ", or " + PLAINTEXT_TOKEN + "=true where the network itself is encrypted");
        }
    }

    private static void requireReadable(String key, Path file) {
        if (file != null && !(Files.isReadable(file) && Files.isRegularFile(file))) {
            throw new ConfigException(key, file, "cannot be read");
        }
    }

    private static Address address(Map<String, ?> configs) {
        String text = text(configs, ADDRESS);
        if (text == null) {
            throw new ConfigException(
                ADDRESS + " is missing: the path of the service's socket, or its host:port");
        }
        try {
            return Address.parse(text);
        } catch (IllegalArgumentException error) {
            throw new ConfigException(ADDRESS, text, error.getMessage());
        }
    }

    private static TlsFiles tls(Map<String, ?> configs) {
        Path ca = path(configs, TLS_CA);
        Path certificate = path(configs, TLS_CERTIFICATE);
        String said = text(configs, TLS);
        boolean isOn = flag(configs, TLS, ca != null || certificate != null);
        Path key = path(configs, TLS_KEY);
        String name = text(configs, TLS_NAME);
        if (key != null && certificate == null) {
            throw new ConfigException(TLS_KEY, key, "it is of no use without " + TLS_CERTIFICATE);
        }
        if (name != null && said == null && !isOn) {
            // A named service is meant to use TLS; without it a token would cross the network as it is.
            throw new ConfigException(TLS_NAME, name, "nothing is encrypted: " + TLS + " or " + TLS_CA + " is missing");
        }
        return isOn ? new TlsFiles(ca, certificate, key, name) : null;
    }

    /** The broker's own number, by the newer key where there are both. */
    private static int brokerId(Map<String, ?> configs) {
        String key = text(configs, "node.id") == null ? "broker.id" : "node.id";
        if (text(configs, key) == null) {
            throw new ConfigException("Neither node.id nor broker.id is there; a broker hands them over");
        }
        return number(configs, key, -1);
    }

    private static String bootstrap(Map<String, ?> configs) {
        String text = text(configs, BOOTSTRAP);
        return text == null || text.length() > BOOTSTRAP_CHARS_MAX ? null : text;
    }

    private static boolean flag(Map<String, ?> configs, String key, boolean without) {
        String text = text(configs, key);
        if (text == null) {
            return without;
        }
        if (!text.equalsIgnoreCase("true") && !text.equalsIgnoreCase("false")) {
            throw new ConfigException(key, text, "expected true or false");
        }
        return text.equalsIgnoreCase("true");
    }

    private static Path path(Map<String, ?> configs, String key) {
        String text = text(configs, key);
        return text == null ? null : Path.of(text);
    }

    private static String text(Map<String, ?> configs, String key) {
        Object value = configs.get(key);
        String text = value == null ? "" : value.toString().strip();
        return text.isEmpty() ? null : text;
    }

    private static int number(Map<String, ?> configs, String key, int without) {
        String text = text(configs, key);
        if (text == null) {
            return without;
        }
        int least = without < 0 ? 0 : 1;
        try {
            int number = Integer.parseInt(text);
            if (number >= least) {
                return number;
            }
        } catch (NumberFormatException error) {
            // Refused below.
        }
        throw new ConfigException(key, text, "expected a number from " + least + " to " + Integer.MAX_VALUE);
    }
}
