"""Worker nodes: slots, queue disciplines and stealing."""
