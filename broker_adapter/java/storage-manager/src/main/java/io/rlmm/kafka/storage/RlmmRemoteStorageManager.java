package io.rlmm.kafka.storage;

import io.rlmm.kafka.storage.copying.Copier;
import io.rlmm.kafka.storage.fetching.Fetcher;
import io.rlmm.kafka.storage.fetching.Waiting;
import io.rlmm.kafka.storage.fetching.Workers;
import io.rlmm.kafka.storage.layout.LayoutException;
import io.rlmm.kafka.storage.layout.ObjectKeys;
import io.rlmm.kafka.storage.objects.FolderStore;
import io.rlmm.kafka.storage.objects.ObjectStore;
import io.rlmm.kafka.storage.objects.S3Store;
import io.rlmm.kafka.storage.objects.TransientException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.log.remote.storage.LogSegmentData;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata.CustomMetadata;
import org.apache.kafka.server.log.remote.storage.RemoteStorageException;
import org.apache.kafka.server.log.remote.storage.RemoteStorageManager;

/**
 * The storage manager that a broker loads: segments in a bucket or in a local folder.
 *
 * <p>All work is done on threads of ours, and the broker's thread waits for it: at an interrupt or a
 * deadline it leaves at once, whatever a socket does.
 */
public class RlmmRemoteStorageManager implements RemoteStorageManager {

    private static final long CLEANING_MS = 2_000;
    private static final long ENDING_MS = 1_000;

    /** All that there is between configure and close. */
    private record Parts(Settings settings, ObjectStore store, Fetcher fetcher, Copier copier, Workers writers) { }

    private volatile Parts parts;
    private boolean isClosed = false;

    /** Called by the broker, by name. */
    public RlmmRemoteStorageManager() { }

    /** Nothing is asked of the store; a second call changes nothing. */
    @Override
    public synchronized void configure(Map<String, ?> configs) {
        if (parts == null && !isClosed) {
            Settings settings = Settings.read(configs);
            begin(settings, settings.root() == null ? bucket(settings) : new FolderStore(settings.root()));
        }
    }

    private static ObjectStore bucket(Settings settings) {
        try {
            return new S3Store(settings.s3());
        } catch (RuntimeException error) {
            if (settings.s3().region() == null) {
                throw new ConfigException(
                    Settings.REGION + " is missing, and the environment names none: " + error.getMessage());
            }
            throw new ConfigException(
                Settings.BUCKET, settings.s3().bucket(), "no client for it: " + error.getMessage());
        }
    }

    /** Of tests, whose stores fail as they are told. */
    synchronized void begin(Settings settings, ObjectStore store) {
        parts = new Parts(settings, store, new Fetcher(store, settings.ring(), settings.limits()),
            new Copier(store, settings.style()), Workers.unbounded("rlmm-storage-write"));
    }

    private Parts parts() {
        Parts started = parts;
        if (started == null) {
            throw new IllegalStateException("the storage manager is not configured, or is closed");
        }
        return started;
    }

    // ------------------------------------------------------------------------------------ writes

    @Override
    public Optional<CustomMetadata> copyLogSegmentData(RemoteLogSegmentMetadata segment, LogSegmentData data)
            throws RemoteStorageException {
        Objects.requireNonNull(segment, "remoteLogSegmentMetadata can not be null");
        Objects.requireNonNull(data, "logSegmentData can not be null");
        Parts now = parts();
        ObjectKeys keys = ObjectKeys.of(now.settings().prefix(), segment);
        // Either the broker learns of the copy, or the copy is taken away: the first of both decides.
        AtomicBoolean isDecided = new AtomicBoolean();
        byte[] custom = run(now,
            () -> copy(now, keys, segment, data, () -> isDecided.compareAndSet(false, true)),
            () -> isDecided.compareAndSet(false, true), Long.MAX_VALUE, keys.main());
        return custom.length == 0 ? Optional.empty() : Optional.of(new CustomMetadata(custom));
    }

    /**
     * A store that is away is not said to be worth another try, though it is: told so, a broker of 4.3
     * tries again under a new id and leaves the start of this copy open for ever, almost silently. Told
     * of a failure, every broker tries again as well, and from 4.0 on ends first what it had begun.
     */
    private static byte[] copy(
            Parts now, ObjectKeys keys, RemoteLogSegmentMetadata segment, LogSegmentData data,
            BooleanSupplier isWanted) throws IOException, LayoutException, RemoteStorageException {
        try {
            return now.copier().copy(keys, segment, data, isWanted);
        } catch (TransientException error) {
            throw new RemoteStorageException(error.getMessage(), error);
        }
    }

    /** May be repeated: a missing object is no error. */
    @Override
    public void deleteLogSegmentData(RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        Parts now = parts();
        ObjectKeys keys = find(now, segment);
        now.fetcher().forget(keys);
        run(now, () -> {
            now.store().delete(keys.all());
            return null;
        }, () -> true, now.settings().deleteMs(), keys.main());
        // A read that was on its way meanwhile may have put something back.
        now.fetcher().forget(keys);
    }

    private static ObjectKeys find(Parts now, RemoteLogSegmentMetadata segment) throws RemoteStorageException {
        Objects.requireNonNull(segment, "remoteLogSegmentMetadata can not be null");
        try {
            return ObjectKeys.find(now.settings().prefix(), segment);
        } catch (LayoutException error) {
            throw StorageErrors.of(error);
        }
    }

    /** A task that no caller waits for any longer is interrupted, and cleans up behind itself. */
    private static <T> T run(
            Parts now, Callable<T> task, BooleanSupplier mayCancel, long millis, String what)
            throws RemoteStorageException {
        FutureTask<T> work;
        try {
            work = now.writers().start(task);
        } catch (RejectedExecutionException error) {
            throw new IllegalStateException("the storage manager is closed", error);
        }
        try {
            return Waiting.forIt(work, millis, what);
        } catch (ExecutionException error) {
            throw StorageErrors.of(error.getCause());
        } catch (IOException error) {
            if (mayCancel.getAsBoolean()) {
                work.cancel(true);
                throw StorageErrors.of(error);
            }
            return ended(work);
        }
    }

    /** The result of an ended task; an interrupt stays set. */
    private static <T> T ended(FutureTask<T> work) throws RemoteStorageException {
        boolean wasInterrupted = Thread.interrupted();
        try {
            return work.get();
        } catch (ExecutionException error) {
            throw StorageErrors.of(error.getCause());
        } catch (InterruptedException error) {
            wasInterrupted = true;
            throw StorageErrors.of(new InterruptedIOException("interrupted"));
        } finally {
            if (wasInterrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    // ------------------------------------------------------------------------------------- reads

    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int startPosition)
            throws RemoteStorageException {
        return fetchLogSegment(segment, startPosition, Integer.MAX_VALUE);
    }

    /** Both ends inclusive; an end beyond the log's is cut to it. */
    @Override
    public InputStream fetchLogSegment(RemoteLogSegmentMetadata segment, int startPosition, int endPosition)
            throws RemoteStorageException {
        if (startPosition < 0 || endPosition < startPosition) {
            throw new IllegalArgumentException("bytes " + startPosition + " to " + endPosition);
        }
        Parts now = parts();
        ObjectKeys keys = find(now, segment);
        // The metadata is what the broker goes by.
        int last = Math.min(endPosition, Math.max(startPosition, segment.segmentSizeInBytes() - 1));
        try {
            return now.fetcher().log(keys, startPosition, last);
        } catch (IOException | LayoutException error) {
            throw StorageErrors.of(error);
        } catch (RejectedExecutionException error) {
            throw new IllegalStateException("the storage manager is closed", error);
        }
    }

    @Override
    public InputStream fetchIndex(RemoteLogSegmentMetadata segment, IndexType indexType)
            throws RemoteStorageException {
        Objects.requireNonNull(indexType, "indexType can not be null");
        Parts now = parts();
        ObjectKeys keys = find(now, segment);
        try {
            return now.fetcher().index(keys, indexType);
        } catch (IOException | LayoutException error) {
            throw StorageErrors.of(error);
        } catch (RejectedExecutionException error) {
            throw new IllegalStateException("the storage manager is closed", error);
        }
    }

    // ----------------------------------------------------------------------------------- the end

    /** Ends what runs; may be called again, and before all else. */
    @Override
    public void close() {
        Parts last;
        synchronized (this) {
            isClosed = true;
            last = parts;
            parts = null;
        }
        if (last != null) {
            last.fetcher().workers().stop();
            last.writers().stop();
            // A copy that was cut off takes its objects away, for which it needs the store.
            last.writers().await(CLEANING_MS);
            // A socket that is silent hears of no interrupt: its end is that of the store.
            last.store().close();
            last.writers().await(ENDING_MS);
            last.fetcher().workers().await(ENDING_MS);
        }
    }
}
