/** Where objects lie: a bucket, or a local folder. */
package io.rlmm.kafka.storage.objects;
