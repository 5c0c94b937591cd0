package io.rlmm.kafka.metadata;

import io.rlmm.kafka.metadata.Questions.Page;
import io.rlmm.kafka.wire.Failure;
import java.util.Iterator;
import java.util.NoSuchElementException;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;

/**
 * The segments of a listing, page by page as they are asked for: a broker need not hold a million.
 *
 * <p>The first page is there when this is made, so that what stands in the way is told where a
 * broker expects it. A later page that fails is an exception that is not checked, never an early end:
 * a broker that deletes by a listing must not take a part for the whole.
 */
final class Listing implements Iterator<RemoteLogSegmentMetadata> {
    private final Questions questions;
    private final TopicIdPartition partition;
    private final Integer epoch;
    private Iterator<RemoteLogSegmentMetadata> page;
    private byte[] after;

    /** With an epoch, the segments that list it. */
    Listing(Questions questions, TopicIdPartition partition, Integer epoch) throws Failure {
        this.questions = questions;
        this.partition = partition;
        this.epoch = epoch;
        turn();
    }

    private void turn() throws Failure {
        Page next = questions.page(partition, epoch, after);
        page = next.segments().iterator();
        after = next.after();
    }

    @Override
    public boolean hasNext() {
        while (!page.hasNext() && after != null) {
            try {
                turn();
            } catch (Failure failure) {
                Exception meant = KafkaErrors.ofQuestion(failure);
                throw meant instanceof RuntimeException known ? known : new KafkaException(meant);
            }
        }
        return page.hasNext();
    }

    @Override
    public RemoteLogSegmentMetadata next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return page.next();
    }
}
