"""Parser of command lines and profiles into settings; unsupported options are refused by name."""
