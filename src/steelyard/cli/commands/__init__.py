"""The commands, one file each: signature, calls, output.

A new command: here the function of the file's name, or an `app` of subcommands; `EXAMPLES` for its help; with `--json`
the type that it prints as `JSON_TYPE`, of which the schema is generated. Its line of help is in `CONTENTS` of
`cli/main.py`, which `steelyard --help` prints without importing any command; its row and its options are in
`docs/reference/commands.md`.
"""
