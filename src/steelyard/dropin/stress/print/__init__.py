"""What cassandra-stress prints: rows, settings, help, graphs and logs."""
