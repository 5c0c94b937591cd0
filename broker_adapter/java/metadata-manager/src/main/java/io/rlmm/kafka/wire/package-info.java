/**
 * The frame protocol of docs/wire-protocol.md as bytes and plain values. Pure: nothing here does
 * I/O or knows a class of Kafka's.
 */
package io.rlmm.kafka.wire;
