/** What a broker asks of its metadata manager, and in which words it is answered. */
package io.rlmm.kafka.metadata;
