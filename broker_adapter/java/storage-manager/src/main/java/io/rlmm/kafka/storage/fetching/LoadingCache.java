package io.rlmm.kafka.storage.fetching;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.FutureTask;
import java.util.function.Predicate;
import java.util.function.ToIntFunction;

/**
 * The values loaded last, up to a weight. Callers that ask for one value at the same time share one
 * load, which goes on when all of them have gone away, so that the next one finds it. What failed is
 * not kept.
 */
final class LoadingCache<K, V> {
    private final long weightMax;
    private final Executor workers;
    /** In the order of their last use. */
    private final Map<K, Entry<V>> entries = new LinkedHashMap<>(16, 0.75f, true);
    private long weight = 0;

    private final ToIntFunction<V> weigher;

    private record Entry<V>(FutureTask<V> load, int weight) { }

    /** One load. However it ends, every waiting caller gets its end, and no failure is found again. */
    private final class Load extends FutureTask<V> {
        private final K key;

        Load(K key, Callable<V> loader) {
            super(loader);
            this.key = key;
        }

        @Override
        protected void set(V value) {
            try {
                weigh(key, this, weigher.applyAsInt(value));
            } catch (RuntimeException | Error error) {
                setException(error);
                return;
            }
            super.set(value);
        }

        @Override
        protected void setException(Throwable error) {
            // Before the callers get it, so that a caller that asks again gets another load.
            forget(key, this);
            super.setException(error);
        }
    }

    LoadingCache(long weightMax, Executor workers, ToIntFunction<V> weigher) {
        this.weightMax = weightMax;
        this.weigher = weigher;
        this.workers = workers;
    }

    /** The value, or a load that begins now; until it is there, it is taken to weigh so much. */
    FutureTask<V> get(K key, int weighing, Callable<V> loader) {
        Load load;
        synchronized (this) {
            Entry<V> found = entries.get(key);
            if (found != null) {
                return found.load();
            }
            load = new Load(key, loader);
            entries.put(key, new Entry<>(load, weighing));
            weight += weighing;
            shrink(load);
        }
        try {
            workers.execute(load);
        } catch (RuntimeException | Error error) {
            // A thread that cannot be had is an Error; others may wait for this load already.
            load.setException(error);
            throw error;
        }
        return load;
    }

    private synchronized void weigh(K key, FutureTask<V> load, int weighing) {
        Entry<V> found = entries.get(key);
        if (found != null && found.load() == load) {
            entries.put(key, new Entry<>(load, weighing));
            weight += weighing - found.weight();
            shrink(load);
        }
    }

    synchronized boolean has(K key) {
        return entries.containsKey(key);
    }

    /** Loads under way stay: they are bounded by the threads that load. */
    private void shrink(FutureTask<V> newest) {
        Iterator<Entry<V>> oldest = entries.values().iterator();
        while (weight > weightMax && oldest.hasNext()) {
            Entry<V> one = oldest.next();
            if (one.load() != newest && one.load().isDone()) {
                oldest.remove();
                weight -= one.weight();
            }
        }
    }

    private synchronized void forget(K key, FutureTask<V> load) {
        Entry<V> found = entries.get(key);
        if (found != null && found.load() == load) {
            entries.remove(key);
            weight -= found.weight();
        }
    }

    synchronized void forgetIf(Predicate<K> isUnwanted) {
        Iterator<Map.Entry<K, Entry<V>>> all = entries.entrySet().iterator();
        while (all.hasNext()) {
            Map.Entry<K, Entry<V>> one = all.next();
            if (isUnwanted.test(one.getKey())) {
                all.remove();
                weight -= one.getValue().weight();
            }
        }
    }
}
