package io.rlmm.kafka.storage.objects;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ScheduledExecutorService;
import java.util.stream.Collectors;
import software.amazon.awssdk.core.exception.AbortedException;
import software.amazon.awssdk.core.exception.ApiCallAttemptTimeoutException;
import software.amazon.awssdk.core.exception.ApiCallTimeoutException;
import software.amazon.awssdk.core.exception.SdkClientException;
import software.amazon.awssdk.core.exception.SdkException;
import software.amazon.awssdk.core.sync.ResponseTransformer;
import software.amazon.awssdk.http.Abortable;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.model.DeleteObjectsResponse;
import software.amazon.awssdk.services.s3.model.GetObjectResponse;
import software.amazon.awssdk.services.s3.model.ObjectIdentifier;
import software.amazon.awssdk.services.s3.model.S3Error;
import software.amazon.awssdk.services.s3.model.S3Exception;

/** A bucket. */
public final class S3Store implements ObjectStore {
    private static final int NOT_FOUND = 404;
    private static final int BEYOND_THE_END = 416;
    private static final int TIMEOUT = 408;
    private static final int TOO_MANY = 429;
    /** What a deletion of many may say of one of them; all else, as a right that is missing, lasts. */
    private static final Set<String> PASSING = Set.of(
        "InternalError", "InternalServerError", "OperationAborted", "RequestTimeout", "ServiceUnavailable", "SlowDown",
        "Throttling", "ThrottlingException", "TooManyRequests");

    private final S3Client client;
    private final S3Settings settings;
    private final ScheduledExecutorService timer;

    /** Nothing is asked before the first call. */
    public S3Store(S3Settings settings) {
        this.settings = settings;
        this.timer = S3Clients.timer();
        try {
            this.client = S3Clients.client(settings, timer);
        } catch (RuntimeException error) {
            timer.shutdownNow();
            throw error;
        }
    }

    /** One call of the SDK. */
    interface Call<T> {
        T run() throws SdkException;
    }

    static <T> T call(String what, String key, Call<T> call) throws IOException {
        try {
            return call.run();
        } catch (AbortedException error) {
            throw (IOException) new InterruptedIOException(what + " " + key + " was interrupted").initCause(error);
        } catch (S3Exception error) {
            throw told(what, key, error);
        } catch (ApiCallTimeoutException | ApiCallAttemptTimeoutException error) {
            throw new TransientException(what + " " + key + " was cancelled at its deadline", error);
        } catch (SdkClientException error) {
            if (Thread.interrupted()) {
                throw (IOException) new InterruptedIOException(what + " " + key + " was interrupted").initCause(error);
            }
            throw new TransientException(what + " " + key + ": " + error.getMessage(), error);
        } catch (SdkException error) {
            throw new IOException(what + " " + key + ": " + error.getMessage(), error);
        }
    }

    private static IOException told(String what, String key, S3Exception error) {
        int status = error.statusCode();
        if (status == NOT_FOUND && !what.startsWith("PUT")) {
            String code = error.awsErrorDetails() == null ? "" : error.awsErrorDetails().errorCode();
            if (!"NoSuchBucket".equals(code)) {
                return new ObjectAbsentException(key, error);
            }
        }
        String message = what + " " + key + ": status " + status + ", " + error.getMessage();
        boolean isTransient = status >= 500 || status == TOO_MANY || status == TIMEOUT || error.isThrottlingException();
        return isTransient ? new TransientException(message, error) : new IOException(message, error);
    }

    @Override
    public Sink create(String key, long bytesMax) {
        return new S3Sink(client, settings, key, bytesMax);
    }

    @Override
    public byte[] read(String key, int start, int length) throws IOException {
        String range = "bytes=" + start + "-" + (start + (long) length - 1);
        return read(key, range, length);
    }

    @Override
    public byte[] readWhole(String key, int bytesMax) throws IOException {
        return read(key, null, bytesMax);
    }

    private byte[] read(String key, String range, int bytesMax) throws IOException {
        // No more than allowed is held, whatever the store sends; the body is read within the deadline.
        ResponseTransformer<GetObjectResponse, byte[]> body = (response, stream) -> limited(stream, bytesMax);
        try {
            byte[] found = call("GET", key, () -> client.getObject(
                get -> get.bucket(settings.bucket()).key(key).range(range)
                    .overrideConfiguration(S3Clients.within(settings.readMs())), body));
            if (found.length > bytesMax) {
                throw new IOException(key + ": more than the " + bytesMax + " bytes that are read");
            }
            return found;
        } catch (ObjectAbsentException error) {
            throw error;
        } catch (IOException error) {
            if (error.getCause() instanceof S3Exception told && told.statusCode() == BEYOND_THE_END) {
                return new byte[0];
            }
            throw error;
        }
    }

    private static byte[] limited(InputStream stream, int bytesMax) throws IOException {
        byte[] found = stream.readNBytes(bytesMax);
        if (found.length == bytesMax && stream.read() >= 0) {
            // Closed alone, it would read to its end, so that the connection can be used again.
            if (stream instanceof Abortable response) {
                response.abort();
            }
            return new byte[bytesMax + 1];
        }
        return found;
    }

    @Override
    public void delete(List<String> keys) throws IOException {
        List<ObjectIdentifier> all = keys.stream().map(key -> ObjectIdentifier.builder().key(key).build()).toList();
        DeleteObjectsResponse done = call("DELETE", keys.get(0), () -> client.deleteObjects(
            delete -> delete.bucket(settings.bucket()).delete(these -> these.objects(all).quiet(true))
                .overrideConfiguration(S3Clients.within(settings.deleteMs()))));
        if (done.hasErrors() && !done.errors().isEmpty()) {
            List<S3Error> failed = done.errors().stream().filter(one -> !"NoSuchKey".equals(one.code())).toList();
            if (!failed.isEmpty()) {
                String message = "DELETE " + failed.stream()
                    .map(one -> one.key() + ": " + one.code()).collect(Collectors.joining(", "));
                boolean isPassing = failed.stream().allMatch(one -> PASSING.contains(String.valueOf(one.code())));
                throw isPassing ? new TransientException(message, null) : new IOException(message);
            }
        }
    }

    @Override
    public void close() {
        client.close();
        timer.shutdownNow();
    }
}
