package io.rlmm.bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicIdPartition;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.server.log.remote.metadata.storage.Lookups;
import org.apache.kafka.server.log.remote.metadata.storage.RemotePartitionMetadataStore;
import org.apache.kafka.server.log.remote.metadata.storage.serialization.RemoteLogMetadataSerde;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;

/**
 * Feeds a file of record sets, or a topic, to the classes that Kafka's own manager of metadata is
 * made of, and prints what they cost as JSON.
 *
 * <p>{@code apply SETS EVENTS PARTITIONS QUESTIONS PASSES HOT} keeps the sets in the heap and reads
 * them anew in each pass, then asks all questions, and the first HOT as often; {@code grow SETS EVENTS PARTITIONS} reads them from the file, once; {@code
 * follow BOOTSTRAP TOPIC EVENTS PARTITIONS} reads a topic.
 */
public final class KafkaClasses {
  private static final int COLLECTIONS = 3;
  private static final Duration POLL = Duration.ofSeconds(1);

  private record RecordSet(int partition, int events, byte[] data) {}

  private record Question(TopicIdPartition partition, int epoch, long offset) {}

  /** Moments of the clocks that costs are differences of. */
  private record Clocks(long threadNs, long processNs, long wallNs) {
    static Clocks now() {
      OperatingSystemMXBean system =
          ManagementFactory.getPlatformMXBean(OperatingSystemMXBean.class);
      return new Clocks(
          ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime(),
          system.getProcessCpuTime(),
          System.nanoTime());
    }

    String costsSince(Clocks before) {
      return String.format(
          "\"thread_ns\": %d, \"process_ns\": %d, \"wall_ns\": %d",
          threadNs - before.threadNs, processNs - before.processNs, wallNs - before.wallNs);
    }
  }

  private final RemoteLogMetadataSerde serde = new RemoteLogMetadataSerde();
  private final List<TopicIdPartition> known;
  private RemotePartitionMetadataStore store = new RemotePartitionMetadataStore();

  private KafkaClasses(Path partitions) throws IOException {
    known = partitions(partitions);
  }

  public static void main(String[] arguments) throws Exception {
    long events = Long.parseLong(arguments[arguments[0].equals("follow") ? 3 : 2]);
    String said =
        switch (arguments[0]) {
          case "apply" ->
              new KafkaClasses(Path.of(arguments[3]))
                  .apply(
                      Path.of(arguments[1]),
                      events,
                      Path.of(arguments[4]),
                      Integer.parseInt(arguments[5]),
                      Integer.parseInt(arguments[6]));
          case "grow" ->
              new KafkaClasses(Path.of(arguments[3])).grow(Path.of(arguments[1]), events);
          case "follow" ->
              new KafkaClasses(Path.of(arguments[4])).follow(arguments[1], arguments[2], events);
          default -> throw new IllegalArgumentException(arguments[0]);
        };
    System.out.println(said);
  }

  private String apply(Path sets, long events, Path questions, int passes, int hot)
      throws Exception {
    List<RecordSet> held = new ArrayList<>();
    try (DataInputStream in = opened(sets)) {
      long read = 0;
      while (read < events) {
        RecordSet one = next(in);
        held.add(one);
        read += one.events;
      }
    }
    List<Question> asked = questions(questions);
    List<String> applied = new ArrayList<>();
    for (int pass = 0; pass < passes; pass++) {
      begin();
      collect();
      Clocks before = Clocks.now();
      long count = 0;
      for (RecordSet one : held) {
        count += apply(one.data);
      }
      Clocks after = Clocks.now();
      applied.add(String.format("{\"events\": %d, %s}", count, after.costsSince(before)));
    }
    held.clear();
    collect();
    long heap = used();
    List<String> answered = new ArrayList<>();
    List<String> hotAnswered = new ArrayList<>();
    List<Question> again = new ArrayList<>();
    while (again.size() < asked.size()) {
      again.addAll(asked.subList(0, hot));
    }
    for (int pass = 0; pass < passes; pass++) {
      answered.add(ask(asked));
      hotAnswered.add(ask(again));
    }
    begin();
    asked.clear();
    again.clear();
    collect();
    return String.format(
        "{\"passes\": [%s], \"lookups\": [%s], \"hot\": [%s], \"heap_bytes\": %d}",
        String.join(", ", applied),
        String.join(", ", answered),
        String.join(", ", hotAnswered),
        heap - used());
  }

  private String grow(Path sets, long events) throws Exception {
    begin();
    long count = 0;
    try (DataInputStream in = opened(sets)) {
      while (count < events) {
        count += apply(next(in).data);
      }
    }
    return String.format("{\"events\": %d, \"peak_bytes\": %d}", count, peak());
  }

  private String follow(String bootstrap, String topic, long events) throws Exception {
    begin();
    Properties properties = new Properties();
    properties.put("bootstrap.servers", bootstrap);
    properties.put("auto.offset.reset", "earliest");
    properties.put("enable.auto.commit", "false");
    properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
    properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
    Clocks before = Clocks.now();
    long count = 0;
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(properties)) {
      consumer.assign(
          consumer.partitionsFor(topic).stream()
              .map(one -> new TopicPartition(topic, one.partition()))
              .toList());
      while (count < events) {
        for (ConsumerRecord<byte[], byte[]> one : consumer.poll(POLL)) {
          store.handleRemoteLogMetadata(serde.deserialize(one.value()));
          count++;
        }
      }
      Clocks after = Clocks.now();
      return String.format("{\"events\": %d, %s}", count, after.costsSince(before));
    }
  }

  /** Empties the store, and tells it of every user partition as an assignment does. */
  private void begin() throws IOException {
    store.close();
    store = new RemotePartitionMetadataStore();
    for (TopicIdPartition one : known) {
      store.maybeLoadPartition(one);
      store.markInitialized(one);
    }
  }

  private long apply(byte[] data) {
    long count = 0;
    for (MutableRecordBatch batch : MemoryRecords.readableRecords(ByteBuffer.wrap(data)).batches()) {
      batch.ensureValid();
      for (Record one : batch) {
        store.handleRemoteLogMetadata(serde.deserialize(Utils.toArray(one.value())));
        count++;
      }
    }
    return count;
  }

  private String ask(List<Question> asked) throws Exception {
    long found = 0;
    long ids = 0;
    Clocks before = Clocks.now();
    for (Question one : asked) {
      Optional<RemoteLogSegmentMetadata> answer =
          Lookups.find(store, one.partition, one.epoch, one.offset);
      if (answer.isPresent()) {
        Uuid id = answer.get().remoteLogSegmentId().id();
        ids ^= id.getMostSignificantBits() ^ id.getLeastSignificantBits();
        found++;
      }
    }
    Clocks after = Clocks.now();
    return String.format(
        "{\"asked\": %d, \"found\": %d, \"ids\": \"%016x\", %s}",
        asked.size(), found, ids, after.costsSince(before));
  }

  // ------------------------------------------------------------------------------------ files

  private static DataInputStream opened(Path path) throws IOException {
    return new DataInputStream(new BufferedInputStream(Files.newInputStream(path), 1 << 20));
  }

  private static RecordSet next(DataInputStream in) throws IOException {
    int partition = in.readInt();
    int events = in.readInt();
    byte[] data = new byte[in.readInt()];
    in.readFully(data);
    return new RecordSet(partition, events, data);
  }

  private static List<TopicIdPartition> partitions(Path path) throws IOException {
    List<TopicIdPartition> found = new ArrayList<>();
    try (DataInputStream in = opened(path)) {
      while (true) {
        Uuid topic = new Uuid(in.readLong(), in.readLong());
        int partition = in.readInt();
        found.add(new TopicIdPartition(topic, partition, in.readUTF()));
      }
    } catch (EOFException end) {
      return found;
    }
  }

  private List<Question> questions(Path path) throws IOException {
    List<Question> found = new ArrayList<>();
    try (DataInputStream in = opened(path)) {
      while (true) {
        TopicIdPartition one = known.get(in.readInt());
        // A caller has made his own: equal, not the same.
        TopicIdPartition partition =
            new TopicIdPartition(one.topicId(), one.partition(), one.topic());
        found.add(new Question(partition, in.readInt(), in.readLong()));
      }
    } catch (EOFException end) {
      return found;
    }
  }

  // ----------------------------------------------------------------------------------- memory

  private static void collect() {
    for (int round = 0; round < COLLECTIONS; round++) {
      System.gc();
    }
  }

  private static long used() {
    return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
  }

  private static long peak() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmHWM:")) {
        return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
      }
    }
    return 0;
  }
}
