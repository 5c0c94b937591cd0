package io.rlmm.kafka.metadata;

import io.rlmm.kafka.events.Event;
import io.rlmm.kafka.events.SegmentForm;
import io.rlmm.kafka.link.Dialler;
import io.rlmm.kafka.link.Link;
import io.rlmm.kafka.link.OwnThreads;
import io.rlmm.kafka.link.Pauses;
import io.rlmm.kafka.link.Timer;
import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Hello;
import java.util.Collection;
import java.util.Iterator;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Everything that one configured manager is made of, begun and ended together.
 *
 * <p>Nothing is static: brokers of a test live in one process, and each has its own.
 */
public final class Manager {
    private static final Logger LOG = LoggerFactory.getLogger(Manager.class);
    private static final Pauses RECONNECT = new Pauses(50, 2_000);
    private static final long JOIN_MS = 3_000;

    private final OwnThreads threads;
    private final Timer timer;
    private final ExecutorService answers;
    private final Link link;
    private final Asking asking;
    private final Questions questions;
    private final Writes writes;

    private Manager(Settings settings, Dialler dialler) {
        threads = new OwnThreads(Integer.toString(settings.brokerId()));
        timer = new Timer(threads);
        answers = Executors.newSingleThreadExecutor(task -> threads.make("answers", task));
        link = new Link(dialler, timer, threads, RECONNECT);
        asking = new Asking(link, timer);
        questions = new Questions(link, asking, settings);
        writes = new Writes(link, asking, timer, settings, answers);
    }

    /** One that begins to connect in the background. */
    public static Manager start(Map<String, ?> configs) {
        Settings settings = Settings.read(configs);
        Hello.Caller caller = new Hello.Caller(
            client(), settings.clusterId(), settings.brokerId(), SegmentForm.uuid(Uuid.randomUuid()),
            settings.bootstrap());
        Dialler dialler = new Dialler(
            settings.address(), settings.tls(), settings.tokenFile(), settings.sendsPlaintextToken(), caller,
            settings.connectMs());
        Manager manager = new Manager(settings, dialler);
        manager.link.start();
        LOG.info("The remote log metadata is asked of rlmm at {}", settings.address());
        return manager;
    }

    private static String client() {
        String version = Manager.class.getPackage().getImplementationVersion();
        return "rlmm-kafka/" + (version == null ? "1" : version);
    }

    public CompletableFuture<Void> store(Event event) {
        return writes.store(event);
    }

    /** The answer to one of the two questions for a single segment. */
    public Optional<RemoteLogSegmentMetadata> segment(
            String method, TopicIdPartition partition, int epoch, long offset) throws RemoteStorageException {
        return answered(() -> questions.segment(method, partition, epoch, offset));
    }

    public Optional<Long> highestOffset(TopicIdPartition partition, int epoch) throws RemoteStorageException {
        return answered(() -> questions.highestOffset(partition, epoch));
    }

    public long size(TopicIdPartition partition, int epoch) throws RemoteStorageException {
        return answered(() -> questions.size(partition, epoch));
    }

    /** Without an epoch, all segments. */
    public Iterator<RemoteLogSegmentMetadata> list(TopicIdPartition partition, Integer epoch)
            throws RemoteStorageException {
        return answered(() -> new Listing(questions, partition, epoch));
    }

    public boolean isReady(TopicIdPartition partition) {
        return questions.isReady(partition);
    }

    public void change(Collection<TopicIdPartition> leaders, Collection<TopicIdPartition> followers) {
        link.change(leaders, followers);
    }

    public void stop(Collection<TopicIdPartition> partitions) {
        link.stop(partitions);
    }

    private interface Question<T> {
        T ask() throws Failure;
    }

    private static <T> T answered(Question<T> question) throws RemoteStorageException {
        try {
            return question.ask();
        } catch (Failure failure) {
            Exception meant = KafkaErrors.ofQuestion(failure);
            if (meant instanceof RemoteStorageException known) {
                throw known;
            }
            throw (RuntimeException) meant;
        }
    }

    /** Ends every thread and every future of ours. */
    public void close() {
        link.close();
        timer.close();
        asking.close();
        writes.close();
        answers.shutdown();
        if (!threads.join(JOIN_MS)) {
            LOG.warn("A thread of the metadata manager has not ended yet; it will, and does nothing more");
        }
    }
}
