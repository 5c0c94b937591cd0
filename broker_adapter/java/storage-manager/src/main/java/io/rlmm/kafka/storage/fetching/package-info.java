/** Segments read in blocks that are kept, with those behind them fetched ahead. */
package io.rlmm.kafka.storage.fetching;
