package io.rlmm.kafka.storage.layout;

import java.util.List;
import java.util.Locale;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;

/**
 * Names of a segment's objects.
 *
 * @param prefix as it was configured, and nothing between
 * @param main what they share
 */
public record ObjectKeys(String prefix, String main) {

    /** Where a new segment goes. */
    public static ObjectKeys of(String prefix, RemoteLogSegmentMetadata segment) {
        TopicIdPartition partition = segment.remoteLogSegmentId().topicIdPartition();
        if (!partition.topic().matches("[A-Za-z0-9._-]{1,249}")) {
            // Another name could be another place.
            throw new IllegalArgumentException("no broker has a topic " + Fields.shown(partition.topic()));
        }
        // Some languages have digits of their own, which no other reader would look for.
        String main = String.format(Locale.ROOT, "%s-%s/%d/%020d-%s", partition.topic(), partition.topicId(),
            partition.partition(), segment.startOffset(), segment.remoteLogSegmentId().id());
        return new ObjectKeys(prefix, main);
    }

    /** Where one lies that was copied: its custom metadata may name another prefix than today's. */
    public static ObjectKeys find(String prefix, RemoteLogSegmentMetadata segment) throws LayoutException {
        ObjectKeys today = of(prefix, segment);
        CustomFields custom = segment.customMetadata().isPresent()
            ? CustomFields.parse(segment.customMetadata().map(CustomMetadata::value).get()) : CustomFields.NONE;
        return new ObjectKeys(
            custom.prefix() == null ? today.prefix : custom.prefix(),
            custom.main() == null ? today.main : custom.main());
    }

    /** The log, whole, in chunks. */
    public String log() {
        return prefix + main + ".log";
    }

    /** All indexes, one after another. */
    public String indexes() {
        return prefix + main + ".indexes";
    }

    /** The object that is written last. */
    public String manifest() {
        return prefix + main + ".rsm-manifest";
    }

    /** All three, the one that makes them a segment first. */
    public List<String> all() {
        return List.of(manifest(), indexes(), log());
    }
}
