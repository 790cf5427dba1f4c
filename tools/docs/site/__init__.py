"""The documentation as a site: pages of the repository, with search, read without a network."""
