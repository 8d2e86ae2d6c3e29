"""Device binaries: a program's text, compiled that far by the real compiler of its target, where this host has one."""
