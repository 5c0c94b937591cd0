package rlmm.kafka;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.utils.ChildFirstClassLoader;
import org.apache.kafka.server.log.remote.metadata.storage.TopicBasedRemoteLogMetadataManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadataManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;

/**
 * A metadata manager behind standard input and output: Kafka's own, or another one.
 *
 * <p>Arguments are the configuration that a broker would hand over, as key=value; with
 * manager.class.name and manager.class.path the manager is of that class and loaded from there, as
 * a broker does it. Each line of input is a command, {"op": ...}; each gets one line of output,
 * {"ok": ...} or {"error": class, "message": ...}. The end of the input closes the manager and ends
 * the process.
 */
public final class StockPeer {
    private static final long WRITE_DEADLINE_S = 30;
    private static final ObjectMapper JSON = new ObjectMapper();

    private final RemoteLogMetadataManager manager;

    private StockPeer(RemoteLogMetadataManager manager) {
        this.manager = manager;
    }

    private static RemoteLogMetadataManager made(Object className, Object classPath)
            throws Exception {
        if (className == null) {
            return new TopicBasedRemoteLogMetadataManager();
        }
        ClassLoader parent = StockPeer.class.getClassLoader();
        ClassLoader loader = new ChildFirstClassLoader((String) classPath, parent);
        return (RemoteLogMetadataManager) loader.loadClass((String) className)
                .getDeclaredConstructor().newInstance();
    }

    public static void main(String[] args) throws Exception {
        // Nothing but answers may reach the pipe that the other side reads.
        PrintStream answers = System.out;
        System.setOut(System.err);
        Map<String, Object> configuration = new HashMap<>();
        for (String argument : args) {
            String[] pair = argument.split("=", 2);
            configuration.put(pair[0], pair[1]);
        }
        StockPeer peer = new StockPeer(made(
                configuration.remove("manager.class.name"),
                configuration.remove("manager.class.path")));
        peer.manager.configure(configuration);
        if (peer.manager instanceof TopicBasedRemoteLogMetadataManager stock) {
            stock.onBrokerReady();
        }
        try (BufferedReader commands = new BufferedReader(
                new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line; (line = commands.readLine()) != null; ) {
                answers.println(JSON.writeValueAsString(peer.answer(line)));
                answers.flush();
            }
        }
        peer.manager.close();
    }

    private ObjectNode answer(String line) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            answer.set("ok", perform(JSON.readTree(line)));
        } catch (ExecutionException failed) {
            refuse(answer, failed.getCause());
        } catch (Exception thrown) {
            refuse(answer, thrown);
        }
        return answer;
    }

    private static void refuse(ObjectNode answer, Throwable thrown) {
        answer.put("error", thrown.getClass().getName());
        answer.put("message", String.valueOf(thrown.getMessage()));
    }

    private JsonNode perform(JsonNode command) throws Exception {
        String op = command.get("op").asText();
        return switch (op) {
            case "assign" -> {
                manager.onPartitionLeadershipChanges(
                        partitions(command, "leaders"), partitions(command, "followers"));
                yield JSON.nullNode();
            }
            case "stop" -> {
                manager.onStopPartitions(partitions(command, "partitions"));
                yield JSON.nullNode();
            }
            case "write" -> {
                write(command.get("event")).call().get(WRITE_DEADLINE_S, TimeUnit.SECONDS);
                yield JSON.nullNode();
            }
            case "write_all" -> writeAll(command);
            case "ask_all" -> askAll(command);
            default -> ask(op, Forms.partition(command.get("partition")), command);
        };
    }

    private JsonNode ask(String op, TopicIdPartition partition, JsonNode command)
            throws Exception {
        return switch (op) {
            case "ready" -> JSON.valueToTree(manager.isReady(partition));
            case "list" -> listed(command.has("epoch")
                    ? manager.listRemoteLogSegments(partition, epoch(command))
                    : manager.listRemoteLogSegments(partition));
            case "lookup" -> found(manager.remoteLogSegmentMetadata(
                    partition, epoch(command), offset(command)));
            case "next_with_txn_index" -> found(manager.nextSegmentWithTxnIndex(
                    partition, epoch(command), offset(command)));
            case "highest" -> JSON.valueToTree(
                    manager.highestOffsetForEpoch(partition, epoch(command)).orElse(null));
            case "size" -> JSON.valueToTree(manager.remoteLogSize(partition, epoch(command)));
            default -> throw new IOException("no such command: " + op);
        };
    }

    /** Asks questions about one user partition one by one, and tells how long each took. */
    private JsonNode askAll(JsonNode command) {
        TopicIdPartition partition = Forms.partition(command.get("partition"));
        ObjectNode told = JSON.createObjectNode();
        var answers = told.putArray("answers");
        var latencies = told.putArray("latencies_us");
        for (JsonNode question : command.get("questions")) {
            ObjectNode answer = answers.addObject();
            long askedNs = System.nanoTime();
            try {
                answer.set("ok", ask(question.get("op").asText(), partition, question));
            } catch (Exception thrown) {
                refuse(answer, thrown);
            }
            latencies.add((System.nanoTime() - askedNs) / 1_000);
        }
        return told;
    }

    /** The call that writes an event, which is made of its form here and now. */
    private Callable<CompletableFuture<Void>> write(JsonNode form) throws IOException {
        String kind = form.get("kind").asText();
        switch (kind) {
            case "segment" -> {
                var segment = Forms.segment(form);
                return () -> manager.addRemoteLogSegmentMetadata(segment);
            }
            case "update" -> {
                var update = Forms.update(form);
                return () -> manager.updateRemoteLogSegmentMetadata(update);
            }
            case "partition_delete" -> {
                var delete = Forms.partitionDelete(form);
                return () -> manager.putRemotePartitionDeleteMetadata(delete);
            }
            default -> throw new IOException("no such event: " + kind);
        }
    }

    /** Writes events in their order, so many in flight, and tells how long each took to its end. */
    private JsonNode writeAll(JsonNode command) throws Exception {
        List<Callable<CompletableFuture<Void>>> writes = new ArrayList<>();
        for (JsonNode form : command.get("events")) {
            writes.add(write(form));
        }
        int inFlight = command.get("in_flight").asInt();
        Semaphore room = new Semaphore(inFlight);
        Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
        long[] takenNs = new long[writes.size()];
        long startNs = System.nanoTime();
        for (int number = 0; number < takenNs.length; number++) {
            int at = number;
            acquire(room, 1);
            long sentNs = System.nanoTime();
            writes.get(at).call().whenComplete((nothing, failure) -> {
                takenNs[at] = System.nanoTime() - sentNs;
                if (failure != null) {
                    failures.add(failure);
                }
                room.release();
            });
        }
        acquire(room, inFlight);
        long wholeNs = System.nanoTime() - startNs;
        if (!failures.isEmpty()) {
            Throwable failure = failures.peek();
            throw new ExecutionException(
                    failure instanceof CompletionException ? failure.getCause() : failure);
        }
        ObjectNode told = JSON.createObjectNode().put("seconds", wholeNs / 1e9);
        var latencies = told.putArray("latencies_us");
        for (long eachNs : takenNs) {
            latencies.add(eachNs / 1_000);
        }
        return told;
    }

    private static void acquire(Semaphore room, int count) throws Exception {
        if (!room.tryAcquire(count, WRITE_DEADLINE_S, TimeUnit.SECONDS)) {
            throw new TimeoutException("a write has not ended in time");
        }
    }

    private static JsonNode listed(Iterator<RemoteLogSegmentMetadata> segments) {
        var list = JSON.createArrayNode();
        segments.forEachRemaining(segment -> list.add(Forms.form(segment)));
        return list;
    }

    private static JsonNode found(Optional<RemoteLogSegmentMetadata> segment) {
        return segment.<JsonNode>map(Forms::form).orElse(JSON.nullNode());
    }

    private static Set<TopicIdPartition> partitions(JsonNode command, String field) {
        Set<TopicIdPartition> partitions = new HashSet<>();
        command.path(field).forEach(form -> partitions.add(Forms.partition(form)));
        return partitions;
    }

    private static int epoch(JsonNode command) {
        return command.get("epoch").asInt();
    }

    private static long offset(JsonNode command) {
        return command.get("offset").asLong();
    }
}
