/** A segment's three objects written, the manifest last. */
package io.rlmm.kafka.storage.copying;
