"""Contract suites of all five seams, and fakes, for authors of plug-ins."""
