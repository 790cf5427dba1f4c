"""Drop-in for YCSB: `steelyard ycsb load|run cassandra-cql -P FILE -p k=v -threads n -target r -s`.

`command` reads the words, `properties` the files, `known` says what each property means here, `order` compiles them,
`lines` prints what YCSB prints. Unsupported options are refused by name; options without effect are reported.
The reference is YCSB 0.17.0 with its binding `cassandra-cql`.
"""
