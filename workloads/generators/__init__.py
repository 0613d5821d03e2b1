"""Statistical workload generators: `yahoo` (published clusters) and `poisson` (queueing theory)."""
