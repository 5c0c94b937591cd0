package org.apache.kafka.server.log.remote.metadata.storage;

import java.util.Optional;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;

/** In Kafka's package, because the question that its manager passes on is not public there. */
public final class Lookups {
  private Lookups() {}

  public static Optional<RemoteLogSegmentMetadata> find(
      RemotePartitionMetadataStore store, TopicIdPartition partition, int epoch, long offset)
      throws RemoteStorageException {
    return store.remoteLogSegmentMetadata(partition, offset, epoch);
  }
}
