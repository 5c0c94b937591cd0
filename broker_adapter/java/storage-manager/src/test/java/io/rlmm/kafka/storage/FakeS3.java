package io.rlmm.kafka.storage;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.zip.CRC32;

/** A bucket in memory, as much of S3 as is used; it counts, and fails as it is told. */
final class FakeS3 implements AutoCloseable {
    /** What is done with a request. */
    enum Reaction { SERVE, FAIL, DENY, NO_BUCKET, HANG, DENY_KEYS, SLOW_KEYS }

    final Map<String, byte[]> objects = new ConcurrentSkipListMap<>();
    final Map<String, Map<Integer, byte[]>> uploads = new ConcurrentSkipListMap<>();
    final List<String> requests = new CopyOnWriteArrayList<>();
    /** Requests whose answer was not taken to its end. */
    final List<String> cut = new CopyOnWriteArrayList<>();
    volatile Function<String, Reaction> script = request -> Reaction.SERVE;
    private final CountDownLatch hanging = new CountDownLatch(1);
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final HttpServer server;

    FakeS3() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", this::handle);
        server.setExecutor(threads);
        server.start();
    }

    String endpoint() {
        return "http://127.0.0.1:" + server.getAddress().getPort();
    }

    long count(String begin) {
        return requests.stream().filter(one -> one.startsWith(begin)).count();
    }

    private void handle(HttpExchange exchange) throws IOException {
        try (exchange) {
            byte[] body = exchange.getRequestBody().readAllBytes();
            String key = exchange.getRequestURI().getPath().substring("/bucket".length()).replaceFirst("^/", "");
            Map<String, String> query = query(exchange.getRequestURI());
            String named = name(exchange.getRequestMethod(), query) + " " + key;
            requests.add(named);
            try {
                react(exchange, named, key, query, body);
            } catch (IOException error) {
                cut.add(named);
                throw error;
            }
        }
    }

    private void react(HttpExchange exchange, String named, String key, Map<String, String> query, byte[] body)
            throws IOException {
        switch (script.apply(named)) {
            case FAIL -> answer(exchange, 500, error("InternalError"));
            case DENY -> answer(exchange, 403, error("AccessDenied"));
            case NO_BUCKET -> answer(exchange, 404, error("NoSuchBucket"));
            case HANG -> hang();
            // As a whole it went well, and of each key it is told why it did not.
            case DENY_KEYS -> answer(exchange, 200, failed(keys(body), "AccessDenied"));
            case SLOW_KEYS -> answer(exchange, 200, failed(keys(body), "SlowDown"));
            default -> serve(exchange, key, query, body);
        }
    }

    private void hang() {
        try {
            hanging.await();
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    private static Map<String, String> query(URI uri) {
        Map<String, String> found = new HashMap<>();
        if (uri.getQuery() != null) {
            for (String pair : uri.getQuery().split("&")) {
                String[] parts = pair.split("=", 2);
                found.put(parts[0], parts.length > 1 ? parts[1] : "");
            }
        }
        return found;
    }

    private static String name(String method, Map<String, String> query) {
        if (query.containsKey("delete")) {
            return "DELETE-THESE";
        }
        if (query.containsKey("uploads")) {
            return "BEGIN";
        }
        if (query.containsKey("partNumber")) {
            return "PART";
        }
        if (query.containsKey("uploadId")) {
            return method.equals("DELETE") ? "ABORT" : "COMPLETE";
        }
        return method;
    }

    private void serve(HttpExchange exchange, String key, Map<String, String> query, byte[] body) throws IOException {
        String id = query.get("uploadId");
        switch (name(exchange.getRequestMethod(), query)) {
            case "PUT" -> {
                checkSum(exchange, body);
                objects.put(key, body);
                answer(exchange, 200, new byte[0]);
            }
            case "GET" -> get(exchange, key);
            case "BEGIN" -> {
                uploads.put("upload-of-" + key.length(), new TreeMap<>());
                answer(exchange, 200, xml("<InitiateMultipartUploadResult><UploadId>upload-of-" + key.length()
                    + "</UploadId></InitiateMultipartUploadResult>"));
            }
            case "PART" -> {
                checkSum(exchange, body);
                uploads.get(id).put(Integer.valueOf(query.get("partNumber")), body);
                answer(exchange, 200, new byte[0]);
            }
            case "COMPLETE" -> {
                Map<Integer, byte[]> parts = uploads.remove(id);
                ByteBuffer whole = ByteBuffer.allocate(parts.values().stream().mapToInt(one -> one.length).sum());
                parts.values().forEach(whole::put);
                objects.put(key, whole.array());
                answer(exchange, 200, xml(
                    "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>"));
            }
            case "ABORT" -> {
                uploads.remove(id);
                answer(exchange, 204, new byte[0]);
            }
            default -> {
                keys(body).forEach(objects::remove);
                answer(exchange, 200, xml("<DeleteResult></DeleteResult>"));
            }
        }
    }

    private static void checkSum(HttpExchange exchange, byte[] body) {
        CRC32 crc = new CRC32();
        crc.update(body);
        String expected = Base64.getEncoder().encodeToString(
            ByteBuffer.allocate(4).putInt((int) crc.getValue()).array());
        if (!expected.equals(exchange.getRequestHeaders().getFirst("x-amz-checksum-crc32"))) {
            throw new IllegalStateException("a checksum that is not that of the body");
        }
    }

    private void get(HttpExchange exchange, String key) throws IOException {
        byte[] found = objects.get(key);
        String range = exchange.getRequestHeaders().getFirst("Range");
        if (found == null) {
            answer(exchange, 404, error("NoSuchKey"));
        } else if (range == null) {
            answer(exchange, 200, found);
        } else {
            String[] ends = range.substring("bytes=".length()).split("-");
            int start = Integer.parseInt(ends[0]);
            if (start >= found.length) {
                answer(exchange, 416, error("InvalidRange"));
            } else {
                int end = (int) Math.min(found.length, Long.parseLong(ends[1]) + 1);
                answer(exchange, 206, Arrays.copyOfRange(found, start, end));
            }
        }
    }

    /** Those that a deletion names. */
    private static List<String> keys(byte[] body) {
        return Pattern.compile("<Key>([^<]*)</Key>").matcher(new String(body, StandardCharsets.UTF_8)).results()
            .map(found -> found.group(1)).toList();
    }

    private static byte[] failed(List<String> keys, String code) {
        return xml(keys.stream()
            .map(key -> "<Error><Key>" + key + "</Key><Code>" + code + "</Code><Message>as told</Message></Error>")
            .collect(Collectors.joining("", "<DeleteResult>", "</DeleteResult>")));
    }

    private static byte[] error(String code) {
        return xml("<Error><Code>" + code + "</Code><Message>as told</Message></Error>");
    }

    private static byte[] xml(String text) {
        return ("<?xml version=\"1.0\" encoding=\"UTF-8\"?>" + text).getBytes(StandardCharsets.UTF_8);
    }

    private static void answer(HttpExchange exchange, int status, byte[] body) throws IOException {
        exchange.getResponseHeaders().set("ETag", "\"e\"");
        exchange.sendResponseHeaders(status, body.length == 0 ? -1 : body.length);
        if (body.length > 0) {
            exchange.getResponseBody().write(body);
        }
    }

    /** Before the manager's end, so that nobody waits for what hangs. */
    void release() {
        hanging.countDown();
    }

    @Override
    public void close() {
        release();
        server.stop(0);
        threads.shutdownNow();
    }
}
