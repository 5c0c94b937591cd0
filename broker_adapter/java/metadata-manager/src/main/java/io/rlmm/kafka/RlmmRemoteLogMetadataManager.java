package io.rlmm.kafka;

import io.rlmm.kafka.events.Event;
import io.rlmm.kafka.metadata.Manager;
import java.util.Iterator;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogMetadataManager;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadataUpdate;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentState;
import org.apache.kafka.server.log.remote.storage.RemotePartitionDeleteMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

/**
 * The metadata manager that a broker loads: everything is asked of an rlmm service.
 *
 * <p>What a broker says wrongly is refused here, before anything is sent. Neither configure nor the
 * two calls about partitions wait: they run on threads of the broker that must not be held up.
 */
public class RlmmRemoteLogMetadataManager implements RemoteLogMetadataManager {
    private volatile Manager manager;
    private boolean isClosed = false;

    /** Called by the broker, by name. */
    public RlmmRemoteLogMetadataManager() { }

    /** Begins in the background; a second call changes nothing. */
    @Override
    public synchronized void configure(Map<String, ?> configs) {
        if (manager == null && !isClosed) {
            manager = Manager.start(configs);
        }
    }

    private Manager manager() {
        Manager started = manager;
        if (started == null) {
            throw new IllegalStateException("the metadata manager is not configured, or is closed");
        }
        return started;
    }

    // ----------------------------------------------------------------------------------- writes

    @Override
    public CompletableFuture<Void> addRemoteLogSegmentMetadata(RemoteLogSegmentMetadata segment)
            throws RemoteStorageException {
        Objects.requireNonNull(segment, "remoteLogSegmentMetadata can not be null");
        if (segment.state() != RemoteLogSegmentState.COPY_SEGMENT_STARTED) {
            throw new IllegalArgumentException("a segment begins in COPY_SEGMENT_STARTED, not in " + segment.state());
        }
        return manager().store(new Event.Start(segment));
    }

    @Override
    public CompletableFuture<Void> updateRemoteLogSegmentMetadata(RemoteLogSegmentMetadataUpdate update)
            throws RemoteStorageException {
        Objects.requireNonNull(update, "remoteLogSegmentMetadataUpdate can not be null");
        if (update.state() == RemoteLogSegmentState.COPY_SEGMENT_STARTED) {
            throw new IllegalArgumentException("a segment begins by being added, not by an update");
        }
        return manager().store(new Event.Update(update));
    }

    @Override
    public CompletableFuture<Void> putRemotePartitionDeleteMetadata(RemotePartitionDeleteMetadata delete)
            throws RemoteStorageException {
        Objects.requireNonNull(delete, "remotePartitionDeleteMetadata can not be null");
        return manager().store(new Event.PartitionDelete(delete));
    }

    // -------------------------------------------------------------------------------- questions

    @Override
    public Optional<RemoteLogSegmentMetadata> remoteLogSegmentMetadata(
            TopicIdPartition partition, int epochForOffset, long offset) throws RemoteStorageException {
        return manager().segment("segment_for", checked(partition), epochForOffset, offset);
    }

    @Override
    public Optional<RemoteLogSegmentMetadata> nextSegmentWithTxnIndex(
            TopicIdPartition partition, int epoch, long offset) throws RemoteStorageException {
        return manager().segment("next_segment_with_txn_index", checked(partition), epoch, offset);
    }

    @Override
    public Optional<Long> highestOffsetForEpoch(TopicIdPartition partition, int leaderEpoch)
            throws RemoteStorageException {
        return manager().highestOffset(checked(partition), leaderEpoch);
    }

    @Override
    public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition partition)
            throws RemoteStorageException {
        return manager().list(checked(partition), null);
    }

    @Override
    public Iterator<RemoteLogSegmentMetadata> listRemoteLogSegments(TopicIdPartition partition, int leaderEpoch)
            throws RemoteStorageException {
        return manager().list(checked(partition), leaderEpoch);
    }

    @Override
    public long remoteLogSize(TopicIdPartition partition, int leaderEpoch) throws RemoteStorageException {
        return manager().size(checked(partition), leaderEpoch);
    }

    /** Never throws: the broker asks this to learn whether to ask anything else. */
    @Override
    public boolean isReady(TopicIdPartition partition) {
        Manager started = manager;
        return started != null && started.isReady(checked(partition));
    }

    private static TopicIdPartition checked(TopicIdPartition partition) {
        return Objects.requireNonNull(partition, "topicIdPartition can not be null");
    }

    // ------------------------------------------------------------------------------- assignment

    @Override
    public void onPartitionLeadershipChanges(
            Set<TopicIdPartition> leaderPartitions, Set<TopicIdPartition> followerPartitions) {
        Objects.requireNonNull(leaderPartitions, "leaderPartitions can not be null");
        Objects.requireNonNull(followerPartitions, "followerPartitions can not be null");
        manager().change(leaderPartitions, followerPartitions);
    }

    @Override
    public void onStopPartitions(Set<TopicIdPartition> partitions) {
        Objects.requireNonNull(partitions, "partitions can not be null");
        manager().stop(partitions);
    }

    // ------------------------------------------------------------------------------------ the end

    /** Prompt, also while nothing is reached; may be called again, and before all else. */
    @Override
    public void close() {
        Manager last;
        synchronized (this) {
            isClosed = true;
            last = manager;
            manager = null;
        }
        if (last != null) {
            last.close();
        }
    }
}
