"""
The objects of a store, listed by requests or read from an inventory of the store.

By module, bottom up:

    key_names        a key as an object of a segment, of a job, of another layout, or as unknown
    rows             objects in few bytes, and the objects of each segment together
    inventory        an inventory: its manifest, its files, its columns
    inventory_rows   the rows of one file of an inventory: CSV, Parquet or ORC
    inventory_files  files of an inventory, fetched and checked
    listing_tasks    folders to list, and units of work: folders listed, an inventory file read
    manifests        topics, partitions and manifests of a store, one after the other

Invariants:

- An object is counted once, under the longest of the prefixes that it is under.
- An unknown key is counted, and never taken for something else.
- Nothing is changed here. Memory is bounded by what one unit holds.

May be imported by `spark_tiering.data_source`, `spark_tiering.maintenance`,
`spark_tiering.read_plan`.
"""
