// cuda.h has it all.
