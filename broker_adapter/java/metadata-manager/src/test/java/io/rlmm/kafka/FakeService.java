package io.rlmm.kafka;

import io.rlmm.kafka.wire.Frames;
import io.rlmm.kafka.wire.MalformedException;
import io.rlmm.kafka.wire.Unpacker;
import java.io.Closeable;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.Channels;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * A service in this process that speaks the frames, may be taken away and brought back, and does what
 * a test tells it instead of answering. What it knows outlives its connections.
 */
final class FakeService implements Closeable {
    /** What is done with a request. */
    enum Reaction {
        ANSWER, KEEP_SILENT, HANG_UP, APPLY_AND_HANG_UP, APPLY_AND_KEEP_SILENT, BE_BUSY, LOOK_FOR_KAFKA,
        REFUSE_FOR_GOOD, SUPERSEDE, NOT_STORE, APPLY_AND_FAIL, APPLY_AND_REFUSE
    }

    /** One request as it came. */
    record Request(int connection, long brokerId, String cluster, String method, List<?> args) { }

    final Map<String, FakeState> clusters = new LinkedHashMap<>();
    final List<Request> requests = new ArrayList<>();
    private final Path path;
    private final ServerSocket tcp;
    private final List<Closeable> open = new ArrayList<>();
    private ServerSocketChannel server;
    private Function<Request, Reaction> script = request -> Reaction.ANSWER;
    private int connections = 0;

    private FakeService(Path path, ServerSocket tcp) {
        this.path = path;
        this.tcp = tcp;
    }

    /** One at a Unix socket, not started. */
    static FakeService at(Path path) {
        return new FakeService(path, null);
    }

    /** One at a listening socket, started. */
    static FakeService at(ServerSocket socket) {
        FakeService service = new FakeService(null, socket);
        service.run(() -> {
            while (true) {
                Socket one = socket.accept();
                service.hold(one);
                service.run(() -> service.serve(one.getInputStream(), one.getOutputStream()));
            }
        });
        return service;
    }

    synchronized FakeService start() throws IOException {
        Files.deleteIfExists(path);
        server = ServerSocketChannel.open(StandardProtocolFamily.UNIX);
        server.bind(UnixDomainSocketAddress.of(path));
        ServerSocketChannel listening = server;
        open.add(listening);
        run(() -> {
            while (true) {
                SocketChannel one = listening.accept();
                hold(one);
                run(() -> serve(Channels.newInputStream(one), Channels.newOutputStream(one)));
            }
        });
        return this;
    }

    private synchronized void hold(Closeable one) {
        open.add(one);
    }

    /** Ends as a killed process does: nobody listens, and all connections are cut. */
    synchronized void kill() throws IOException {
        for (Closeable one : open) {
            one.close();
        }
        open.clear();
        if (path != null) {
            Files.deleteIfExists(path);
        }
    }

    /** What is done with each request from now on. */
    synchronized void script(Function<Request, Reaction> reactions) {
        script = reactions;
    }

    synchronized FakeState state(String cluster) {
        return clusters.computeIfAbsent(cluster, name -> new FakeState());
    }

    /** Does something with the state while nothing is answered. */
    synchronized void with(String cluster, java.util.function.Consumer<FakeState> change) {
        change.accept(state(cluster));
    }

    synchronized List<String> methods() {
        return requests.stream().map(Request::method).toList();
    }

    synchronized List<Request> of(String method) {
        return requests.stream().filter(one -> one.method().equals(method)).toList();
    }

    private interface Work {
        void run() throws IOException, MalformedException;
    }

    private void run(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException | MalformedException over) {
                return;
            }
        }, "fake-service");
        thread.setDaemon(true);
        thread.start();
    }

    private void serve(InputStream bytes, OutputStream out) throws IOException, MalformedException {
        DataInputStream in = new DataInputStream(bytes);
        int number;
        synchronized (this) {
            number = ++connections;
        }
        long broker = -1;
        String cluster = "";
        while (true) {
            List<?> message = (List<?>) Unpacker.unpack(Frames.read(in, Frames.BYTES_MAX_DEFAULT));
            Object id = message.get(0);
            String method = (String) message.get(1);
            List<?> args = (List<?>) message.get(2);
            if (method.equals("hello")) {
                Map<?, ?> said = (Map<?, ?>) args.get(0);
                broker = (Long) said.get("broker_id");
                cluster = (String) said.get("cluster_id");
            }
            byte[] answer = react(new Request(number, broker, cluster, method, args), id);
            if (answer == null) {
                bytes.close();
                return;
            }
            out.write(answer);
            out.flush();
        }
    }

    /** The frame to send, of no bytes for silence, or null: hang up. */
    private synchronized byte[] react(Request request, Object id) {
        requests.add(request);
        Reaction reaction = script.apply(request);
        if (reaction == Reaction.HANG_UP) {
            return null;
        } else if (reaction == Reaction.KEEP_SILENT) {
            return new byte[0];
        } else if (reaction == Reaction.BE_BUSY) {
            return Frames.frame(Arrays.asList(id, Arrays.asList("too-busy", "busy", true, Map.of()), null));
        } else if (reaction == Reaction.LOOK_FOR_KAFKA) {
            List<Object> error = Arrays.asList("not-ready", "not yet", true, Map.of("reason", "connecting"));
            return Frames.frame(Arrays.asList(id, error, null));
        } else if (reaction == Reaction.REFUSE_FOR_GOOD) {
            return Frames.frame(Arrays.asList(id, Arrays.asList("not-permitted", "no", false, Map.of()), null));
        } else if (reaction == Reaction.SUPERSEDE) {
            List<Object> error = Arrays.asList("superseded", "another start", false, Map.of("base", "not-permitted"));
            return Frames.frame(Arrays.asList(id, error, null));
        } else if (reaction == Reaction.NOT_STORE) {
            List<Object> error = Arrays.asList("append-refused", "too few replicas", false, Map.of());
            return Frames.frame(Arrays.asList(id, error, null));
        }
        Object message;
        try {
            Object result = request.method().equals("hello")
                ? hello(request) : state(request.cluster()).answer(request);
            message = Arrays.asList(id, null, result);
        } catch (FakeState.Refused refused) {
            message = Arrays.asList(id, refused.error, null);
        }
        if (reaction == Reaction.APPLY_AND_KEEP_SILENT) {
            return new byte[0];
        } else if (reaction == Reaction.APPLY_AND_FAIL) {
            message = Arrays.asList(id, Arrays.asList("part-failed", "a fault", false, Map.of()), null);
        } else if (reaction == Reaction.APPLY_AND_REFUSE) {
            message = Arrays.asList(id, Arrays.asList("not-permitted", "no", false, Map.of()), null);
        }
        return reaction == Reaction.APPLY_AND_HANG_UP ? null : Frames.frame(message);
    }

    private static Object hello(Request request) {
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("version", 1);
        answer.put("server", "fake/1");
        answer.put("cluster_id", request.cluster());
        answer.put("topic_id", new byte[16]);
        answer.put("partition_count", 50);
        answer.put("role", "broker");
        answer.put("mode", "serve");
        answer.put("limits", Map.of(
            "frame_bytes_max", 4_194_304, "pipeline_max", 128, "waiting_max", 256, "lookups_max", 10_000,
            "page_max", 1_000, "idle_ms", 600_000, "timeout_ms_max", 120_000, "assign_max", 1_000));
        return answer;
    }

    @Override
    public void close() throws IOException {
        kill();
        if (tcp != null) {
            tcp.close();
        }
    }
}
