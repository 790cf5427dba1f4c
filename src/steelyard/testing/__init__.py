"""Contract suites for the five kinds of plug-ins, and fakes, for authors of plug-ins."""
