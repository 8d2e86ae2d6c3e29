// The shim has it all.
