"""Who acts, and what they run on: the kernel, worker nodes, schedulers and the clocks that host them."""
