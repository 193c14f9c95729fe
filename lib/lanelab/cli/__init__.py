"""The command line: one thin file a command group. Each command is one call into the library."""
