/** Kafka's events and segments as values of the protocol, and what can be told of them. Pure. */
package io.rlmm.kafka.events;
