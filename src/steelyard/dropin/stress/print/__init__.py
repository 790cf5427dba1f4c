"""Output in cassandra-stress's formats: rows, results, graphs and logs."""
