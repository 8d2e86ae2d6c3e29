"""What NVIDIA's compiler says of CUDA texts."""
