package io.rlmm.kafka.events;

import java.util.Arrays;
import java.util.List;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;

/** Something that a broker wants stored, as one request. */
public sealed interface Event {
    /** The method that stores it. */
    String method();

    /** Its arguments, without options. */
    List<Object> args();

    /** The user partition that it is about. */
    TopicIdPartition partition();

    /** The question whose answer tells what became of it. */
    String lookMethod();

    /** The arguments of that question. */
    List<Object> lookArgs();

    /** Whether it says that a copy is there: a broker that hears that it failed copies again. */
    default boolean endsCopy() {
        return false;
    }

    /** A copy of a segment starts. */
    record Start(RemoteLogSegmentMetadata segment) implements Event {
        @Override
        public String method() {
            return "add_segment";
        }

        @Override
        public List<Object> args() {
            return List.of(SegmentForm.partition(partition()), SegmentForm.value(segment));
        }

        @Override
        public TopicIdPartition partition() {
            return segment.topicIdPartition();
        }

        @Override
        public String lookMethod() {
            return "segment";
        }

        @Override
        public List<Object> lookArgs() {
            return List.of(SegmentForm.partition(partition()), SegmentForm.uuid(segment.remoteLogSegmentId().id()));
        }
    }

    /** A known segment moves on. */
    record Update(RemoteLogSegmentMetadataUpdate update) implements Event {
        @Override
        public String method() {
            return "update_segment";
        }

        @Override
        public List<Object> args() {
            return Arrays.asList(
                SegmentForm.partition(partition()),
                SegmentForm.uuid(update.remoteLogSegmentId().id()),
                update.brokerId(),
                update.eventTimestampMs(),
                SegmentForm.custom(update.customMetadata()),
                (int) update.state().id());
        }

        @Override
        public boolean endsCopy() {
            return update.state() == RemoteLogSegmentState.COPY_SEGMENT_FINISHED;
        }

        @Override
        public TopicIdPartition partition() {
            return update.topicIdPartition();
        }

        @Override
        public String lookMethod() {
            return "segment";
        }

        @Override
        public List<Object> lookArgs() {
            return List.of(SegmentForm.partition(partition()), SegmentForm.uuid(update.remoteLogSegmentId().id()));
        }
    }

    /** The deletion of a whole user partition moves on. */
    record PartitionDelete(RemotePartitionDeleteMetadata delete) implements Event {
        @Override
        public String method() {
            return "put_partition_delete";
        }

        @Override
        public List<Object> args() {
            return List.of(
                SegmentForm.partition(partition()), delete.brokerId(), delete.eventTimestampMs(),
                (int) delete.state().id());
        }

        @Override
        public TopicIdPartition partition() {
            return delete.topicIdPartition();
        }

        @Override
        public String lookMethod() {
            return "partition_delete";
        }

        @Override
        public List<Object> lookArgs() {
            return List.of(SegmentForm.partition(partition()));
        }
    }
}
