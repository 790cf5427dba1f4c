"""YCSB's command line on our agent: `steelyard ycsb load|run cassandra-cql -P FILE -p k=v -threads n -target r -s`.

`command` reads the words, `properties` the files, `known` says what each property means here, `order` compiles them,
`lines` prints what YCSB prints. What we do not have is refused by name; what has no meaning here is said.
The reference is YCSB 0.17.0 with its binding `cassandra-cql`.
"""
