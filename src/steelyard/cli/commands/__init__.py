"""The commands, one file each: signature, calls, output."""
