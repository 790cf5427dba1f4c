"""Contract suites for the six kinds of plug-ins, and fakes, for authors of plug-ins."""
