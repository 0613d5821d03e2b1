"""The big switch between machines: ports, flows of coflows, and the allocations that give flows their rates."""
