"""PTX texts held to NVIDIA's assembler, and read back and run in numpy: what they mean, not how fast they are."""
