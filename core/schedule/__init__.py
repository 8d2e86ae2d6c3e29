"""Which axis runs where: a kernel with its axes, the options that cut and move them, and the compiler's own choice."""
