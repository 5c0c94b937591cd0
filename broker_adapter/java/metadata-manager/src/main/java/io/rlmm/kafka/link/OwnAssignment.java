package io.rlmm.kafka.link;

import io.rlmm.kafka.events.SegmentForm;
import io.rlmm.kafka.wire.Limits;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicIdPartition;

/**
 * What this broker leads and follows, as far as it said. Pure; its user sees to one thread at a time.
 *
 * <p>Kept here so that a service can be told again: one that was started anew knows nothing.
 * Invariant: a broker that has said nothing yet says nothing, since an empty assignment is one, too.
 */
final class OwnAssignment {
    /** Partitions in one message where a service does not say: less than any takes by default. */
    private static final int PARTITIONS_MAX_UNTOLD = 1_000;
    /** Most bytes of a message beside its partitions, and of a partition beside its topic. */
    private static final int AROUND_BYTES = 128;
    private static final int PARTITION_BYTES = 29;

    private final Map<TopicIdPartition, Boolean> leads = new LinkedHashMap<>();
    /** What it had, while the service may not know that it has it no more. */
    private final Set<TopicIdPartition> gone = new LinkedHashSet<>();
    private boolean isKnown = false;

    /** One request about the assignment. */
    record Message(String method, List<Object> args) { }

    boolean contains(TopicIdPartition partition) {
        return leads.containsKey(partition);
    }

    boolean isKnown() {
        return isKnown;
    }

    /** These are led and followed from now on; what to tell of it. */
    List<Message> add(Collection<TopicIdPartition> leaders, Collection<TopicIdPartition> followers, Limits limits) {
        Map<TopicIdPartition, Boolean> said = new LinkedHashMap<>();
        followers.forEach(partition -> said.put(partition, false));
        leaders.forEach(partition -> said.put(partition, true));
        leads.putAll(said);
        gone.removeAll(said.keySet());
        isKnown = true;
        return assigns(said, limits);
    }

    /** These are not this broker's any more; what to tell of it. */
    List<Message> remove(Collection<TopicIdPartition> partitions, Limits limits) {
        for (TopicIdPartition partition : partitions) {
            if (leads.remove(partition) != null) {
                gone.add(partition);
            }
        }
        return stops(partitions, limits);
    }

    /**
     * All of it, for a service that may know nothing or something else; nothing where nothing was said.
     *
     * <p>What one message has no room for is added in several, so that nothing is taken away for a
     * moment; and what is to go is named.
     */
    List<Message> whole(Limits limits) {
        if (!isKnown) {
            return List.of();
        }
        List<List<TopicIdPartition>> parts = parts(leads.keySet(), limits);
        if (parts.size() == 1) {
            return List.of(assign(leads, parts.get(0), true));
        }
        List<Message> messages = new ArrayList<>(assigns(leads, limits));
        if (!gone.isEmpty()) {
            messages.addAll(stops(gone, limits));
        }
        return messages;
    }

    /** The service has heard all of it. */
    void accepted() {
        gone.clear();
    }

    private static List<Message> assigns(Map<TopicIdPartition, Boolean> said, Limits limits) {
        return parts(said.keySet(), limits).stream().map(part -> assign(said, part, false)).toList();
    }

    private static Message assign(
            Map<TopicIdPartition, Boolean> said, List<TopicIdPartition> part, boolean isComplete) {
        List<Object> led = new ArrayList<>();
        List<Object> followed = new ArrayList<>();
        part.forEach(one -> (said.get(one) ? led : followed).add(SegmentForm.partition(one)));
        return new Message("assign", List.of(led, followed, isComplete));
    }

    private static List<Message> stops(Collection<TopicIdPartition> partitions, Limits limits) {
        return parts(partitions, limits).stream()
            .map(part -> new Message("stop_partitions", List.of(part.stream().map(SegmentForm::partition).toList())))
            .toList();
    }

    /** The partitions, divided so that each part has room in a message; one part at least. */
    private static List<List<TopicIdPartition>> parts(Collection<TopicIdPartition> partitions, Limits limits) {
        int most = limits.assignMax() == 0 ? PARTITIONS_MAX_UNTOLD : limits.assignMax();
        List<List<TopicIdPartition>> parts = new ArrayList<>();
        parts.add(new ArrayList<>());
        int left = limits.frameBytesMax() - AROUND_BYTES;
        for (TopicIdPartition partition : partitions) {
            int size = PARTITION_BYTES + partition.topic().getBytes(StandardCharsets.UTF_8).length;
            List<TopicIdPartition> last = parts.get(parts.size() - 1);
            if (!last.isEmpty() && (last.size() >= most || size > left)) {
                last = new ArrayList<>();
                parts.add(last);
                left = limits.frameBytesMax() - AROUND_BYTES;
            }
            last.add(partition);
            left -= size;
        }
        return parts;
    }
}
