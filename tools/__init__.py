"""Developer tools of this repository; they are not in the packages that users install."""
