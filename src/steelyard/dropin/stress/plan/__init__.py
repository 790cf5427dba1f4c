"""From settings to the orders that the agent carries out, and to tables."""
