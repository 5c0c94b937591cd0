package io.rlmm.kafka.link;

import io.rlmm.kafka.wire.Answer;
import io.rlmm.kafka.wire.Failure;
import io.rlmm.kafka.wire.Frames;
import io.rlmm.kafka.wire.Hello;
import io.rlmm.kafka.wire.Kind;
import io.rlmm.kafka.wire.Limits;
import io.rlmm.kafka.wire.MalformedException;
import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;

/**
 * One connection: requests out, answers in, each to the caller that waits for it.
 *
 * <p>Many requests are under way at once; nothing is repeated here. A caller never touches the
 * socket: frames are put into a queue that one thread empties, and another one reads.
 */
final class Connection {
    /** Requests without an answer; a service that owes so many does not answer any more. */
    private static final int SENT_MAX = 20_000;

    private final Transport transport;
    private final DataInputStream in;
    private final Map<Long, CompletableFuture<Object>> sent = new LinkedHashMap<>();
    private final Queue<byte[]> queue = new ArrayDeque<>();
    private Limits limits = Limits.UNTOLD;
    private String server = "";
    private long lastId = 0;
    private Failure over;
    private volatile long heardNs = System.nanoTime();
    /** A caller waited for an answer in vain, and no byte has come since. */
    private volatile boolean isSilent = false;

    Connection(Transport transport) {
        this.transport = transport;
        in = new DataInputStream(new BufferedInputStream(transport.in(), 64 * 1024));
    }

    /** Sends the broker's identity before anything else; on the calling thread, which has a deadline. */
    void greet(Hello.Caller caller, String token) throws IOException, MalformedException, Failure {
        transport.out().write(Frames.request(0, "hello", List.of(caller.said(token))));
        transport.out().flush();
        Answer answer = Answer.read(Frames.read(in, Frames.BYTES_MAX_DEFAULT));
        if (answer.refusal() != null) {
            throw Failure.refused(answer.refusal());
        }
        Hello.Greeting greeting = Hello.Greeting.read(answer.result());
        synchronized (this) {
            limits = greeting.limits();
            server = greeting.server();
        }
    }

    synchronized Limits limits() {
        return limits;
    }

    /** Name and version of the service. */
    synchronized String server() {
        return server;
    }

    synchronized boolean isOver() {
        return over != null;
    }

    long heardNs() {
        return heardNs;
    }

    boolean isSilent() {
        return isSilent;
    }

    /** A caller waits no longer for the answer to its request of this time. */
    void missed(long askedNs) {
        if (heardNs - askedNs < 0) {
            isSilent = true;
        }
    }

    /** Sends a request behind all that were sent before; the answer, or its Failure. */
    CompletableFuture<Object> send(String method, List<?> args) {
        CompletableFuture<Object> answer = new CompletableFuture<>();
        Failure refused = null;
        synchronized (this) {
            if (over != null) {
                refused = Failure.of(Kind.UNREACHABLE, method + " was not sent: " + over.getMessage(), over);
            } else {
                long id = nextId();
                byte[] frame = Frames.request(id, method, args);
                if (frame.length - 4 > limits.frameBytesMax()) {
                    refused = Failure.of(Kind.BAD_ARGUMENT, method + " has no room in a frame");
                } else {
                    sent.put(id, answer);
                    queue.add(frame);
                    notifyAll();
                }
            }
        }
        if (refused != null) {
            answer.completeExceptionally(refused);
        } else if (unanswered() > SENT_MAX) {
            end(Failure.of(Kind.UNREACHABLE, "nothing is answered any more"));
        }
        return answer;
    }

    private long nextId() {
        do {
            lastId = lastId == Frames.ID_MAX ? 1 : lastId + 1;
        } while (sent.containsKey(lastId));
        return lastId;
    }

    private synchronized int unanswered() {
        return sent.size();
    }

    /** Takes answers until it is over; on a thread of its own. */
    void readAll() {
        try {
            while (!isOver()) {
                take(Answer.read(Frames.read(in, limits().frameBytesMax())));
            }
        } catch (MalformedException error) {
            end(Failure.of(Kind.MALFORMED, error.getMessage(), error));
        } catch (EOFException error) {
            end(Failure.of(Kind.UNREACHABLE, "the service has hung up"));
        } catch (Throwable error) {
            // Also where there is no room for a frame: a connection left open would never come back.
            end(Failure.of(Kind.UNREACHABLE, "the connection broke: " + error.getMessage(), error));
        }
    }

    private void take(Answer answer) throws MalformedException {
        heardNs = System.nanoTime();
        isSilent = false;
        if (answer.id() == null) {
            end(Failure.refused(answer.refusal()));
            return;
        }
        CompletableFuture<Object> waiting;
        synchronized (this) {
            waiting = sent.remove(answer.id());
        }
        if (waiting == null) {
            throw new MalformedException("an answer to " + answer.id() + ", which was not asked");
        }
        if (answer.refusal() == null) {
            waiting.complete(answer.result());
        } else {
            waiting.completeExceptionally(Failure.refused(answer.refusal()));
        }
    }

    /** Sends the queued frames until the connection ends; on a thread of its own. */
    void writeAll() {
        OutputStream out = transport.out();
        try {
            for (byte[] frames = nextFrames(); frames != null; frames = nextFrames()) {
                out.write(frames);
                out.flush();
            }
        } catch (InterruptedException error) {
            end(Failure.of(Kind.UNREACHABLE, "the writer was interrupted"));
        } catch (Throwable error) {
            end(Failure.of(Kind.UNREACHABLE, "the connection broke: " + error.getMessage(), error));
        }
    }

    /** Everything that waits, so that a crowd costs one call; null: it is over. */
    private synchronized byte[] nextFrames() throws InterruptedException {
        while (queue.isEmpty() && over == null) {
            wait();
        }
        if (over != null) {
            return null;
        }
        if (queue.size() == 1) {
            return queue.remove();
        }
        int size = 0;
        for (byte[] frame : queue) {
            size += frame.length;
        }
        ByteBuffer joined = ByteBuffer.allocate(size);
        queue.forEach(joined::put);
        queue.clear();
        return joined.array();
    }

    /** Hangs up, and fails every waiting request with the reason. Idempotent. */
    void end(Failure why) {
        List<CompletableFuture<Object>> waiting;
        synchronized (this) {
            if (over != null) {
                return;
            }
            over = why;
            waiting = new ArrayList<>(sent.values());
            sent.clear();
            queue.clear();
            notifyAll();
        }
        transport.close();
        for (CompletableFuture<Object> one : waiting) {
            // The request was sent, or may have been: the outcome of a write is unknown.
            one.completeExceptionally(Failure.of(Kind.UNCERTAIN, "not answered: " + why.getMessage(), why));
        }
    }

    /** Why it is over, or null. */
    synchronized Failure whyOver() {
        return over;
    }
}
