"""Wire format: records of the agent and all other engines as values. Imports only `model` of our packages."""
