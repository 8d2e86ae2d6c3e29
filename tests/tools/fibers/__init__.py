"""Texts of CUDA, HIP and Metal built and run on this machine's CPU, threads as fibers: what they mean, not how fast they are."""
