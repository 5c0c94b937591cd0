package io.rlmm.kafka.storage;

import io.rlmm.kafka.storage.copying.Copier;
import io.rlmm.kafka.storage.fetching.Fetcher;
import io.rlmm.kafka.storage.layout.Blocks;
import io.rlmm.kafka.storage.layout.CustomFields;
import io.rlmm.kafka.storage.layout.KeyRing;
import io.rlmm.kafka.storage.layout.LayoutException;
import io.rlmm.kafka.storage.objects.S3Settings;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.kafka.common.config.ConfigException;

/**
 * What a broker hands over, read: everything behind the prefix of its server.properties.
 *
 * @param root a local folder, or null for a bucket
 * @param s3 a bucket, or null for a local folder
 * @param deleteMs how long a deletion is waited for
 */
record Settings(
        Path root, S3Settings s3, String prefix, KeyRing ring, Copier.Style style, Fetcher.Limits limits,
        int deleteMs) {
    static final String ROOT = "storage.root";
    static final String BUCKET = "storage.s3.bucket.name";
    static final String ENDPOINT = "storage.s3.endpoint.url";
    static final String REGION = "storage.s3.region";
    static final String PATH_STYLE = "storage.s3.path.style.access.enabled";
    static final String PART_BYTES = "storage.s3.multipart.upload.part.size";
    static final String ACCESS_KEY = "storage.aws.access.key.id";
    static final String SECRET_KEY = "storage.aws.secret.access.key";
    static final String CHECKSUMS = "storage.s3.checksums.enabled";
    static final String MD5 = "storage.s3.legacy.md5.plugin.enabled";
    static final String PREFIX = "key.prefix";
    static final String CHUNK_BYTES = "chunk.size";
    static final String COMPRESSION = "compression.enabled";
    static final String HEURISTIC = "compression.heuristic.enabled";
    static final String CUSTOM_FIELDS = "custom.metadata.fields.include";
    static final String CUSTOM_BYTES = "custom.metadata.max.bytes";
    static final String KEY_RING = "encryption.key.ring.file";
    static final String THREADS = "fetch.threads";
    static final String WAIT_MS = "fetch.timeout.ms";
    static final String FAILURE_MS = "fetch.failure.wait.ms";
    static final String CACHE_BYTES = "fetch.chunk.cache.size";
    static final String INDEX_CACHE_BYTES = "fetch.indexes.cache.size";
    static final String AHEAD_BYTES = "fetch.read.ahead.size";
    static final String READ_MS = "request.read.timeout.ms";
    static final String WRITE_MS = "request.write.timeout.ms";
    static final String DELETE_MS = "request.delete.timeout.ms";

    private static final int MIB = 1024 * 1024;
    private static final int CHUNK_BYTES_LEAST = 4 * 1024;
    private static final int CONNECTIONS_FOR_WRITES = 32;
    private static final Set<String> FIELDS = Set.of(CustomFields.SIZE, CustomFields.PREFIX, CustomFields.KEY);

    /**
     * Reads what was configured.
     *
     * @throws ConfigException where it cannot be meant; a broker that starts says so and ends
     */
    static Settings read(Map<String, ?> configs) {
        Values values = new Values(configs);
        int threads = values.number(THREADS, 8, 1, 256);
        int deleteMs = values.number(DELETE_MS, 10_000, 1, Integer.MAX_VALUE);
        return new Settings(
            root(values),
            s3(values, threads, deleteMs),
            prefix(values),
            ring(values),
            style(values),
            new Fetcher.Limits(
                threads,
                values.number(WAIT_MS, 450, 1, Integer.MAX_VALUE),
                values.number(FAILURE_MS, 300, 0, Integer.MAX_VALUE),
                values.number(CACHE_BYTES, 128 * MIB, MIB, Integer.MAX_VALUE),
                values.number(INDEX_CACHE_BYTES, 16 * MIB, 0, Integer.MAX_VALUE),
                values.number(AHEAD_BYTES, 8 * MIB, 0, Integer.MAX_VALUE)),
            deleteMs);
    }

    private static Path root(Values values) {
        String root = values.text(ROOT);
        if ((root == null) == (values.text(BUCKET) == null)) {
            throw new ConfigException("Exactly one of " + ROOT + " and " + BUCKET + " is needed: where segments go");
        }
        if (root != null && !Files.isDirectory(Path.of(root))) {
            throw new ConfigException(ROOT, root, "there is no such folder");
        }
        return root == null ? null : Path.of(root);
    }

    private static S3Settings s3(Values values, int threads, int deleteMs) {
        String bucket = values.text(BUCKET);
        if (bucket == null) {
            return null;
        }
        String accessKey = values.text(ACCESS_KEY);
        String secretKey = values.text(SECRET_KEY);
        if ((accessKey == null) != (secretKey == null)) {
            throw new ConfigException(ACCESS_KEY + " and " + SECRET_KEY + " belong together");
        }
        String endpoint = values.text(ENDPOINT);
        String region = values.text(REGION);
        return new S3Settings(
            bucket,
            endpoint == null ? null : uri(endpoint),
            // An endpoint of one's own has no region, and signatures need one.
            region == null && endpoint != null ? "us-east-1" : region,
            values.flag(PATH_STYLE, false),
            accessKey,
            secretKey,
            values.number(PART_BYTES, 8 * MIB, 5 * MIB, 512 * MIB),
            values.flag(CHECKSUMS, true),
            values.flag(MD5, false),
            threads + CONNECTIONS_FOR_WRITES,
            values.number(READ_MS, 5_000, 1, Integer.MAX_VALUE),
            values.number(WRITE_MS, 60_000, 1, Integer.MAX_VALUE),
            deleteMs);
    }

    private static URI uri(String endpoint) {
        try {
            URI found = URI.create(endpoint);
            if (found.getHost() != null && ("http".equals(found.getScheme()) || "https".equals(found.getScheme()))) {
                return found;
            }
        } catch (IllegalArgumentException error) {
            // Refused below.
        }
        throw new ConfigException(ENDPOINT, endpoint, "expected http(s)://host:port");
    }

    private static String prefix(Values values) {
        String prefix = values.text(PREFIX);
        return prefix == null ? "" : prefix;
    }

    private static KeyRing ring(Values values) {
        String file = values.text(KEY_RING);
        if (file == null) {
            return KeyRing.none();
        }
        try {
            return KeyRing.read(Path.of(file));
        } catch (IOException | LayoutException error) {
            throw new ConfigException(KEY_RING, file, "it cannot be used: " + error.getMessage());
        }
    }

    private static Copier.Style style(Values values) {
        String named = values.text(CUSTOM_FIELDS);
        Set<String> fields = Arrays.stream((named == null ? CustomFields.SIZE : named).split(","))
            .map(String::strip).filter(one -> !one.isEmpty() && !one.equals("NONE")).collect(Collectors.toSet());
        if (!FIELDS.containsAll(fields)) {
            throw new ConfigException(CUSTOM_FIELDS, named, "expected NONE, or some of " + FIELDS);
        }
        return new Copier.Style(
            values.number(CHUNK_BYTES, 4 * MIB, CHUNK_BYTES_LEAST, Blocks.CHUNK_BYTES_MAX),
            values.flag(COMPRESSION, false),
            values.flag(HEURISTIC, false),
            fields,
            values.number(CUSTOM_BYTES, 128, 0, Integer.MAX_VALUE));
    }

    /** Texts or numbers, as they come; keys that are not ours are passed over. */
    private record Values(Map<String, ?> configs) {
        String text(String key) {
            Object value = configs.get(key);
            if (value instanceof org.apache.kafka.common.config.types.Password secret) {
                value = secret.value();
            }
            String text = value == null ? "" : value.toString().strip();
            return text.isEmpty() ? null : text;
        }

        boolean flag(String key, boolean without) {
            String text = text(key);
            if (text == null || text.equalsIgnoreCase("true") || text.equalsIgnoreCase("false")) {
                return text == null ? without : text.equalsIgnoreCase("true");
            }
            throw new ConfigException(key, text, "expected true or false");
        }

        int number(String key, int without, int least, int most) {
            String text = text(key);
            if (text == null) {
                return without;
            }
            try {
                int number = Integer.parseInt(text);
                if (number >= least && number <= most) {
                    return number;
                }
            } catch (NumberFormatException error) {
                // Refused below.
            }
            throw new ConfigException(key, text, "expected a number from " + least + " to " + most);
        }
    }
}
