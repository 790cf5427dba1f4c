"""Wire format: records from the agent and all other engines as values. Imports only `model` from our packages."""
