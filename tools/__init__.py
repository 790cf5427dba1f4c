"""Programs of this repository, for who works on it; none is in the packages that users install."""
