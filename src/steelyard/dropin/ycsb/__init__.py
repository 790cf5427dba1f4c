"""Drop-in for YCSB: `steelyard ycsb load|run cassandra-cql -P FILE -p k=v -threads n -target r -s`.

`command` parses the words, `properties` the files, `property_support` lists what is supported, `order` compiles them,
`output` prints in YCSB's format. Unsupported options are refused by name; options without effect are reported.
The reference is YCSB 0.17.0 with its binding `cassandra-cql`.
"""
