"""Output in cassandra-stress's formats: rows, settings, help, graphs and logs."""
