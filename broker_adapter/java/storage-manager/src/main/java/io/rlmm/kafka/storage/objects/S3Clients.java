package io.rlmm.kafka.storage.objects;

import java.time.Duration;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;
import software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.awscore.AwsRequestOverrideConfiguration;
import software.amazon.awssdk.core.checksums.RequestChecksumCalculation;
import software.amazon.awssdk.core.checksums.ResponseChecksumValidation;
import software.amazon.awssdk.core.client.config.ClientOverrideConfiguration;
import software.amazon.awssdk.http.apache.ApacheHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.s3.LegacyMd5Plugin;
import software.amazon.awssdk.services.s3.S3Client;
import software.amazon.awssdk.services.s3.S3ClientBuilder;
import software.amazon.awssdk.services.s3.S3Configuration;

/** A client of the SDK, as settings say. */
final class S3Clients {
    private static final int CONNECT_MS_MAX = 2_000;
    /** Attempts within one deadline: one that hangs leaves room for another. */
    private static final int ATTEMPTS = 2;

    private S3Clients() { }

    static S3Client client(S3Settings settings, ScheduledExecutorService timer) {
        S3ClientBuilder builder = S3Client.builder()
            .httpClientBuilder(ApacheHttpClient.builder()
                .maxConnections(settings.connections())
                .connectionTimeout(Duration.ofMillis(Math.min(CONNECT_MS_MAX, settings.readMs())))
                .socketTimeout(Duration.ofMillis(settings.writeMs())))
            .overrideConfiguration(ClientOverrideConfiguration.builder()
                .scheduledExecutorService(timer)
                .apiCallTimeout(Duration.ofMillis(settings.writeMs())).build())
            .credentialsProvider(credentials(settings))
            .forcePathStyle(settings.isPathStyle())
            .serviceConfiguration(S3Configuration.builder().chunkedEncodingEnabled(false).build())
            // Uploads carry checksums that are reckoned here: no store has to know trailers.
            .requestChecksumCalculation(RequestChecksumCalculation.WHEN_REQUIRED)
            .responseChecksumValidation(ResponseChecksumValidation.WHEN_REQUIRED);
        if (settings.hasMd5()) {
            builder.addPlugin(LegacyMd5Plugin.create());
        }
        if (settings.endpoint() != null) {
            builder.endpointOverride(settings.endpoint());
        }
        if (settings.region() != null) {
            builder.region(Region.of(settings.region()));
        }
        return builder.build();
    }

    /** What ends requests at their deadlines; the SDK's own would outlive the client by one of them. */
    static ScheduledExecutorService timer() {
        ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "rlmm-storage-timer");
            thread.setDaemon(true);
            return thread;
        });
        timer.setRemoveOnCancelPolicy(true);
        return timer;
    }

    private static AwsCredentialsProvider credentials(S3Settings settings) {
        if (settings.accessKey() == null) {
            return DefaultCredentialsProvider.builder().build();
        }
        return StaticCredentialsProvider.create(
            AwsBasicCredentials.create(settings.accessKey(), settings.secretKey()));
    }

    static AwsRequestOverrideConfiguration within(int millis) {
        return AwsRequestOverrideConfiguration.builder()
            .apiCallTimeout(Duration.ofMillis(millis))
            .apiCallAttemptTimeout(Duration.ofMillis(Math.max(1, millis / ATTEMPTS)))
            .build();
    }
}
