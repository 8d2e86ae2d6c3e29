"""WGSL on this machine: two judges of its grammar and rules, and a Vulkan device of the processor that runs it."""
