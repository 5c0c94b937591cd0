package io.rlmm.kafka;

import io.rlmm.kafka.wire.Packer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** What a service knows of one cluster, as far as the tests of a client need it. */
final class FakeState {
    /** One event of each kind moves the offset on. */
    long offset = 0;
    final Map<Long, Set<String>> assigned = new LinkedHashMap<>();
    final Set<String> loading = new HashSet<>();
    final Map<String, Map<String, List<Object>>> segments = new LinkedHashMap<>();
    final Map<String, List<Object>> deletions = new LinkedHashMap<>();
    int pageSize = 1_000;
    int retryAfterMs = 20;

    /** A refusal that is answered. */
    static final class Refused extends Exception {
        private static final long serialVersionUID = 1L;
        final transient List<Object> error;

        Refused(String code, boolean retriable, Map<String, Object> fields) {
            super(code);
            error = Arrays.asList(code, "of the fake", retriable, fields);
        }
    }

    static String key(Object value) {
        return HexFormat.of().formatHex(Packer.pack(value));
    }

    Object answer(FakeService.Request request) throws Refused {
        List<?> args = request.args();
        return switch (request.method()) {
            case "ping" -> null;
            case "assign" -> assign(request.brokerId(), args);
            case "stop_partitions" -> stop(request.brokerId(), (List<?>) args.get(0));
            case "is_ready" -> isOwn(request, args.get(0)) && !loading.contains(key(args.get(0)));
            case "add_segment", "update_segment", "put_partition_delete" -> write(request);
            default -> question(request);
        };
    }

    private Object assign(long broker, List<?> args) {
        Set<String> own = assigned.computeIfAbsent(broker, id -> new HashSet<>());
        if ((boolean) args.get(2)) {
            own.clear();
        }
        for (Object led : (List<?>) args.get(0)) {
            own.add(key(led));
        }
        for (Object followed : (List<?>) args.get(1)) {
            own.add(key(followed));
        }
        return 1L;
    }

    private Object stop(long broker, List<?> partitions) {
        Set<String> own = assigned.computeIfAbsent(broker, id -> new HashSet<>());
        partitions.forEach(one -> own.remove(key(one)));
        return 2L;
    }

    private boolean isOwn(FakeService.Request request, Object partition) {
        return assigned.getOrDefault(request.brokerId(), Set.of()).contains(key(partition));
    }

    private void admit(FakeService.Request request) throws Refused {
        Object partition = request.args().get(0);
        if (!assigned.containsKey(request.brokerId())) {
            throw new Refused("not-ready", true, Map.of("reason", "assignment-unknown", "retry_after_ms", 20));
        }
        if (!isOwn(request, partition)) {
            throw new Refused("not-assigned", false, Map.of("metadata_partition", 7));
        }
        if (loading.contains(key(partition))) {
            throw new Refused("not-ready", true, Map.of("reason", "replaying", "retry_after_ms", retryAfterMs));
        }
    }

    private Object write(FakeService.Request request) throws Refused {
        List<?> args = request.args();
        Map<?, ?> options = (Map<?, ?>) args.get(args.size() - 1);
        boolean isStored = false;
        try {
            admit(request);
        } catch (Refused refused) {
            isStored = "not-assigned".equals(refused.getMessage()) && "store".equals(options.get("unassigned"));
            if (!isStored) {
                throw refused;
            }
        }
        String verdict = apply(request.method(), args);
        return List.of(7, offset++, isStored ? "stored-not-assigned" : verdict);
    }

    private String apply(String method, List<?> args) throws Refused {
        String partition = key(args.get(0));
        if (method.equals("put_partition_delete")) {
            deletions.put(partition, new ArrayList<>(args.subList(1, 4)));
            if ((long) args.get(3) == 2) {
                segments.remove(partition);
            }
            return "applied";
        }
        Map<String, List<Object>> known = segments.computeIfAbsent(partition, name -> new LinkedHashMap<>());
        if (method.equals("add_segment")) {
            List<Object> segment = new ArrayList<>((List<?>) args.get(1));
            List<Object> before = known.put(key(segment.get(0)), segment);
            return before == null ? "applied" : "duplicate";
        }
        return update(known, args);
    }

    private static String update(Map<String, List<Object>> known, List<?> args) throws Refused {
        List<Object> segment = known.get(key(args.get(1)));
        if (segment == null) {
            throw rejected("unknown-segment", null);
        }
        List<Object> wanted = Arrays.asList(args.get(2), args.get(3), args.get(4), args.get(5));
        List<Object> there = Arrays.asList(segment.get(3), segment.get(5), segment.get(8), segment.get(9));
        if (key(wanted).equals(key(there))) {
            return "duplicate";
        }
        if ((long) args.get(5) <= (long) segment.get(9)) {
            throw rejected("illegal-transition", "DELETE_SEGMENT_STARTED");
        }
        segment.set(3, args.get(2));
        segment.set(5, args.get(3));
        segment.set(8, args.get(4));
        segment.set(9, args.get(5));
        if ((long) args.get(5) == 3) {
            known.remove(key(args.get(1)));
        }
        return "applied";
    }

    private static Refused rejected(String reason, String current) {
        Map<String, Object> fields = new LinkedHashMap<>();
        fields.put("reason", reason);
        fields.put("current", current);
        fields.put("requested", "COPY_SEGMENT_FINISHED");
        fields.put("stored_at", null);
        return new Refused("event-rejected", false, fields);
    }

    private Object question(FakeService.Request request) throws Refused {
        admit(request);
        List<?> args = request.args();
        String partition = key(args.get(0));
        if (request.method().equals("partition_delete")) {
            return deletions.get(partition);
        }
        List<Object> deletion = deletions.get(partition);
        boolean isDeleted = deletion != null && (long) deletion.get(2) == 2;
        if (isDeleted || !segments.containsKey(partition)) {
            throw new Refused("unknown-partition", false, Map.of());
        }
        Map<String, List<Object>> known = segments.get(partition);
        return switch (request.method()) {
            case "segment" -> known.get(key(args.get(1)));
            case "segment_for", "next_segment_with_txn_index" -> find(request.method(), known, args);
            case "highest_offset" -> known.values().stream().filter(one -> (long) one.get(9) == 1)
                .map(one -> (Long) one.get(2)).max(Long::compare).orElse(null);
            case "remote_log_size" -> known.values().stream().mapToLong(one -> (Long) one.get(7)).sum();
            case "list_segments" -> page(known, args.get(1));
            case "list_segments_by_epoch" -> page(known, args.get(2));
            default -> throw new Refused("unknown-method", false, Map.of());
        };
    }

    private static Object find(String method, Map<String, List<Object>> known, List<?> args) {
        boolean isForIndex = method.startsWith("next");
        return known.values().stream()
            .filter(one -> (long) one.get(9) == 1 && (long) one.get(2) >= (long) args.get(2))
            .filter(one -> isForIndex ? !(boolean) one.get(10) : (long) one.get(1) <= (long) args.get(2))
            .findFirst().orElse(null);
    }

    private Object page(Map<String, List<Object>> known, Object after) {
        List<List<Object>> all = new ArrayList<>(known.values());
        int from = after == null ? 0 : ((byte[]) after)[0];
        int to = Math.min(all.size(), from + pageSize);
        return Arrays.asList(all.subList(from, to), to == all.size() ? null : new byte[] {(byte) to});
    }
}
