package io.rlmm.kafka.link;

import java.net.InetAddress;
import java.net.UnknownHostException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;

/** Where a service listens. */
public sealed interface Address {
    /** What Linux takes; a longer path would be tried for ever. */
    int SOCKET_BYTES_MAX = 107;

    /** A socket of this machine; a user who may open its file may send requests. */
    record Unix(Path path) implements Address {
        @Override
        public String toString() {
            return path.toString();
        }
    }

    /** A host and a port. */
    record Tcp(String host, int port) implements Address {
        /** Whether every address of the host is one of this machine alone; a host that is not found is not. */
        public boolean isThisMachine() {
            try {
                return Arrays.stream(InetAddress.getAllByName(host)).allMatch(InetAddress::isLoopbackAddress);
            } catch (UnknownHostException error) {
                return false;
            }
        }

        @Override
        public String toString() {
            return host + ":" + port;
        }
    }

    /**
     * A path that begins with a slash or "unix:", or host:port, [host]:port for version 6 of IP.
     *
     * @throws IllegalArgumentException where it is neither
     */
    static Address parse(String text) {
        if (text.startsWith("/")) {
            return unix(text);
        }
        if (text.startsWith("unix:")) {
            return unix(text.substring("unix:".length()));
        }
        int colon = text.lastIndexOf(':');
        String host = colon < 0 ? "" : text.substring(0, colon);
        if (host.startsWith("[") && host.endsWith("]")) {
            host = host.substring(1, host.length() - 1);
        }
        int port = 0;
        try {
            port = Integer.parseInt(text.substring(colon + 1));
        } catch (NumberFormatException error) {
            // The range below refuses it.
        }
        if (host.isEmpty() || host.contains("/") || port < 1 || port > 65_535) {
            throw new IllegalArgumentException("expected the path of a socket or host:port, got " + text);
        }
        return new Tcp(host, port);
    }

    private static Address unix(String path) {
        int bytes = path.getBytes(StandardCharsets.UTF_8).length;
        if (bytes < 1 || bytes > SOCKET_BYTES_MAX) {
            throw new IllegalArgumentException(
                "expected the path of a socket, of 1 to " + SOCKET_BYTES_MAX + " bytes, got " + bytes);
        }
        return new Unix(Path.of(path));
    }
}
