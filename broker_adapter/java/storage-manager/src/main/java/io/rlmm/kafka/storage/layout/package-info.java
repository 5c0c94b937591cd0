/** PURE. What a tiered segment's objects are called and what is in them: manifests, chunks, indexes, seals. */
package io.rlmm.kafka.storage.layout;
