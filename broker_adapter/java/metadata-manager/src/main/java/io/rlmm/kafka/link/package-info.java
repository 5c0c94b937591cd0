/** A connection to the service that comes back, and what has to be said on each. */
package io.rlmm.kafka.link;
