/** PURE. Names and contents of a tiered segment's objects: manifests, chunks, indexes, seals. */
package io.rlmm.kafka.storage.layout;
