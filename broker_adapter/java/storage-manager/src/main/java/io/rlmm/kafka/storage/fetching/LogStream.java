package io.rlmm.kafka.storage.fetching;

import io.rlmm.kafka.storage.layout.LayoutException;
import java.io.IOException;
import java.io.InputStream;
import java.util.Objects;

/** A part of a log, block by block; nothing is asked for before it is read. */
final class LogStream extends InputStream {
    private final Fetcher fetcher;
    private final Segment segment;
    private final int last;
    private int position;
    private byte[] block = null;
    private int blockStart = 0;

    LogStream(Fetcher fetcher, Segment segment, int start, int last) {
        this.fetcher = fetcher;
        this.segment = segment;
        this.position = start;
        this.last = last;
    }

    @Override
    public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
        Objects.checkFromIndexSize(offset, length, into.length);
        if (length == 0) {
            return 0;
        }
        if (position > last || position < 0) {
            return -1;
        }
        int number = position / segment.blocks.blockBytes();
        if (block == null || blockStart != segment.blocks.start(number)) {
            block = null;
            block = load(number);
            blockStart = segment.blocks.start(number);
        }
        int within = position - blockStart;
        int some = Math.min(length, Math.min(block.length - within, last - position + 1));
        System.arraycopy(block, within, into, offset, some);
        position += some;
        return some;
    }

    private byte[] load(int number) throws IOException {
        try {
            return fetcher.block(segment, number);
        } catch (LayoutException error) {
            throw new IOException(error.getMessage(), error);
        }
    }

    @Override
    public long skip(long wanted) {
        long some = Math.max(0, Math.min(wanted, (long) last + 1 - position));
        position = (int) (position + some);
        return some;
    }

    @Override
    public int available() {
        return block == null || position > last ? 0
            : Math.max(0, Math.min(last + 1, blockStart + block.length) - position);
    }

    @Override
    public void close() {
        block = null;
        position = Integer.MAX_VALUE;
    }
}
